package presets

import (
	"context"
	"encoding/xml"
	"path"
	"slices"
	"strings"

	"github.com/holdfast-dev/holdfast/internal/pathrule"
)

type (
	mavenSettings struct {
		Mirrors  []mavenMirror  `xml:"mirrors>mirror"`
		Profiles []mavenProfile `xml:"profiles>profile"`
		Active   []string       `xml:"activeProfiles>activeProfile"`
	}
	mavenMirror struct {
		URL     string `xml:"url"`
		Of      string `xml:"mirrorOf"`
		Blocked bool   `xml:"blocked"`
	}
	mavenProfile struct {
		ID           string            `xml:"id"`
		ByDefault    bool              `xml:"activation>activeByDefault"`
		Repositories []mavenRepository `xml:"repositories>repository"`
		Plugins      []mavenRepository `xml:"pluginRepositories>pluginRepository"`
	}
	mavenRepository struct {
		ID  string `xml:"id"`
		URL string `xml:"url"`
	}
)

// mavenSays reads the user's settings.xml and that of Maven's home: the mirrors, and the repositories of profiles that these files
// make active, unless they have a mirror.
func mavenSays(a *asker, ctx context.Context) ([]said, error) {
	out, err := a.run(ctx, "maven", "mvn", "--batch-mode", "--version")
	if err != nil {
		return nil, err
	}
	files := []string{pathrule.Join(a.variable("HOME"), ".m2/settings.xml")}
	for line := range strings.Lines(out) {
		if home, ok := strings.CutPrefix(strings.TrimSpace(line), "Maven home: "); ok {
			files = append(files, path.Join(home, "conf/settings.xml"))
		}
	}
	var all mavenSettings
	for _, file := range files {
		text, err := a.read("maven", file)
		if err != nil {
			return nil, err
		}
		var s mavenSettings
		if text != "" && xml.Unmarshal([]byte(text), &s) != nil {
			return nil, unsaid("maven", file+" is no XML of settings", "`mvn help:effective-settings` says where it is wrong", nil)
		}
		all.Mirrors, all.Profiles, all.Active = append(all.Mirrors, s.Mirrors...), append(all.Profiles, s.Profiles...), append(all.Active, s.Active...)
	}
	return all.said(), nil
}

// said returns the mirrors and the repositories; none if central is neither mirrored nor replaced.
func (s mavenSettings) said() []said {
	mirrors, repositories := said{setting: "mirrors"}, said{setting: "repositories"}
	for _, m := range s.Mirrors {
		if !m.Blocked {
			mirrors.urls = append(mirrors.urls, strings.TrimSpace(m.URL))
		}
	}
	central := s.mirrored(mavenRepository{"central", "https://central/"})
	replaced := map[string]int{}
	for _, p := range s.Profiles {
		if !p.ByDefault && !slices.Contains(s.Active, p.ID) {
			continue
		}
		for kind, list := range map[string][]mavenRepository{"artifacts": p.Repositories, "plugins": p.Plugins} {
			for _, r := range list {
				if r.ID == "central" {
					replaced[kind]++
				}
				if !s.mirrored(r) {
					repositories.urls = append(repositories.urls, strings.TrimSpace(r.URL))
				}
			}
		}
	}
	slices.Sort(repositories.urls)
	switch {
	case central:
		return []said{mirrors, repositories}
	case len(replaced) == 2:
		return []said{repositories, mirrors}
	}
	return nil
}

// mirrored reports whether a repository has a mirror: its id or a pattern in mirrorOf (Maven's guide to mirror settings).
func (s mavenSettings) mirrored(r mavenRepository) bool {
	return slices.ContainsFunc(s.Mirrors, func(m mavenMirror) bool {
		matches := false
		for of := range strings.SplitSeq(m.Of, ",") {
			switch of = strings.TrimSpace(of); of {
			case "!" + r.ID:
				return false
			case r.ID, "*", "external:*":
				matches = true
			case "external:http:*":
				matches = matches || strings.HasPrefix(r.URL, "http:")
			}
		}
		return matches
	})
}
