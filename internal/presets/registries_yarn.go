package presets

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// pnpmSays reads the settings that pnpm prints as JSON.
func pnpmSays(a *asker, ctx context.Context) ([]said, error) {
	out, err := a.run(ctx, "pnpm", "pnpm", "config", "list", "--json")
	if err != nil {
		return nil, err
	}
	var set map[string]any
	if json.Unmarshal([]byte(out), &set) != nil {
		return nil, unsaid("pnpm", "`pnpm config list --json` printed no JSON", "run it to see why", nil)
	}
	scoped, err := scopes("pnpm", set)
	return append([]said{stringOf(set, "registry")}, scoped...), err
}

// stringOf returns a setting that is a text.
func stringOf(set map[string]any, name string) said {
	if u, ok := set[name].(string); ok && u != "" {
		return said{name, []string{u}}
	}
	return said{setting: name}
}

// yarnSays asks yarn, which Debian calls yarnpkg. Neither the program that a setting yarn-path names is run, nor one that corepack would fetch.
func yarnSays(a *asker, ctx context.Context) ([]said, error) {
	program := "yarn"
	if _, err := a.find(program); errors.Is(err, exec.ErrNotFound) {
		if _, err := a.find("yarnpkg"); err == nil {
			program = "yarnpkg"
		}
	}
	version, err := a.run(ctx, "yarn", program, "--version")
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(version, "0.") || strings.HasPrefix(version, "1.") {
		return yarnClassicSays(a, ctx, program)
	}
	server, err := a.run(ctx, "yarn", program, "config", "get", "npmRegistryServer")
	if err != nil {
		return nil, err
	}
	list := []said{{"npmRegistryServer", strings.Fields(server)}}
	out, err := a.run(ctx, "yarn", program, "config", "get", "npmScopes", "--json")
	if out = strings.TrimSpace(out); err != nil || out == "" || out == "undefined" {
		return list, err
	}
	var scoped map[string]struct{ NPMRegistryServer string }
	if json.Unmarshal([]byte(out), &scoped) != nil {
		return nil, unsaid("yarn", "`yarn config get npmScopes --json` printed no JSON", "run it to see why", nil)
	}
	for _, name := range slices.Sorted(maps.Keys(scoped)) {
		if u := scoped[name].NPMRegistryServer; u != "" {
			list = append(list, said{"npmScopes." + name + ".npmRegistryServer", []string{u}})
		}
	}
	return list, nil
}

// yarnClassicSays reads what yarn 1 prints: its settings and those of npm, which come first (getRegistry in its npm-registry.js).
func yarnClassicSays(a *asker, ctx context.Context, program string) ([]said, error) {
	out, err := a.run(ctx, "yarn", program, "config", "list", "--json")
	if err != nil {
		return nil, err
	}
	set := map[string]any{}
	for line := range strings.Lines(out) {
		var part struct {
			Type string
			Data json.RawMessage
		}
		if json.Unmarshal([]byte(line), &part) == nil && part.Type == "inspect" {
			if json.Unmarshal(part.Data, &set) != nil { // adds to what is there
				return nil, unsaid("yarn", "`yarn config list --json` printed no settings", "run it to see why", nil)
			}
		}
	}
	scoped, err := scopes("yarn", set)
	return append([]said{stringOf(set, "registry")}, scoped...), err
}
