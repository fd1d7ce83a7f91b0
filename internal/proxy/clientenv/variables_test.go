package clientenv

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var testHTTP = netip.MustParseAddrPort("127.0.0.1:3128")

func TestVariablesNameTheProxyInBothCasesAndLeaveLoopbackDirect(t *testing.T) {
	list := Variables(VariablesOptions{HTTP: testHTTP})
	for _, want := range []string{
		"HTTP_PROXY=http://127.0.0.1:3128", "http_proxy=http://127.0.0.1:3128", "HTTPS_PROXY=http://127.0.0.1:3128", "https_proxy=http://127.0.0.1:3128",
		"ALL_PROXY=http://127.0.0.1:3128", "NO_PROXY=localhost,127.0.0.1,0.0.0.0,::1", "no_proxy=localhost,127.0.0.1,0.0.0.0,::1", "NODE_USE_ENV_PROXY=1",
	} {
		if !slices.Contains(list, want) {
			t.Errorf("%s is missing", want)
		}
	}
	if slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "CERT") || strings.Contains(s, "trustStore") }) || !slices.IsSorted(list) {
		t.Errorf("%q", list)
	}
}

func TestTheKeyStandsInTheProxysURLAndNowhereElse(t *testing.T) {
	for _, s := range Variables(VariablesOptions{HTTP: testHTTP, Key: "k/@:ey"}) {
		name, value, _ := strings.Cut(s, "=")
		switch {
		case strings.Contains(value, "k/@:ey"):
			t.Errorf("%s: the key is not escaped", s)
		case strings.Contains(value, "k%2F%40%3Aey") && !strings.Contains(value, "holdfast:k%2F%40%3Aey@127.0.0.1:3128"):
			t.Errorf("%s: the key is in another place", s)
		case strings.HasSuffix(strings.ToLower(name), "_proxy") && len(value) > len("true") && value != noProxyHosts && !strings.Contains(value, "k%2F%40%3Aey"):
			t.Errorf("%s: the key is missing", s)
		}
	}
}

func TestABundleAloneSetsNoProxyAndNothingSetsNothing(t *testing.T) {
	list := Variables(VariablesOptions{Bundle: "/run/b.pem", Store: "/run/a store"})
	if !slices.Contains(list, "SSL_CERT_FILE=/run/b.pem") || !slices.Contains(list, `JAVA_TOOL_OPTIONS="-Djavax.net.ssl.trustStore=/run/a store" -Djavax.net.ssl.trustStoreType=PKCS12 -Djavax.net.ssl.trustStorePassword=changeit`) {
		t.Errorf("%q", list)
	}
	if slices.ContainsFunc(list, func(s string) bool { return strings.Contains(strings.ToLower(s), "proxy") }) {
		t.Errorf("%q", list)
	}
	if list := Variables(VariablesOptions{}); list != nil {
		t.Errorf("%q", list)
	}
}

func TestEveryVariableSaysWhoReadsIt(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range variables {
		if v.readers == "" || seen[v.name] || !strings.Contains(variablesTable(), "| `"+v.name+"` | `") {
			t.Errorf("%s has no reader, stands twice or not in the table", v.name)
		}
		seen[v.name] = true
	}
}

func TestTheSSHCommandPassesAShellUnchanged(t *testing.T) {
	const command = `'/proc/self/exe' -x "a b" %h %p`
	list := Variables(VariablesOptions{ProxyCommand: command})
	out, err := exec.Command("sh", "-c", "ssh() { printf '%s|' \"$@\"; }; "+strings.TrimPrefix(list[0], "GIT_SSH_COMMAND=")).Output()
	if err != nil || string(out) != "-o|ProxyCommand="+command+"|" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestTheDocumentationHasTheVariables(t *testing.T) {
	text, err := os.ReadFile("../../../docs/network.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), variablesTable()) {
		t.Errorf("docs/network.md has another table than this:\n%s", variablesTable())
	}
}

// variablesTable returns the variables and who reads each, as a table in Markdown.
func variablesTable() string {
	o := VariablesOptions{
		HTTP: testHTTP, Bundle: "BUNDLE", Store: "STORE", ProxyCommand: "COMMAND %h %p",
	}
	var b strings.Builder
	b.WriteString("| variable | value | read by |\n|---|---|---|\n")
	for _, v := range variables {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", v.name, cmp.Or(v.value(o), v.value(VariablesOptions{Denies: true})), v.readers)
	}
	return b.String()
}
