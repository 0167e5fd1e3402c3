package main

import (
	"os"
	"strings"
	"testing"
)

// A mistake that only one system sees is found there, and nowhere else.
func TestMistakesOfOtherSystemsAreFound(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod":       "module example\n\ngo 1.26\n",
		"main.go":      "package main\n\nimport \"net\" // with packages of its vendor folder\n\nfunc main() { _ = net.IPv4len; open() }\n",
		"open_unix.go": "//go:build unix\n\npackage main\n\nimport \"syscall\"\n\nfunc open() { _ = syscall.SIGUSR1 }\n",
		"open_else.go": "//go:build !unix\n\npackage main\n\nimport \"syscall\"\n\nfunc open() { _ = syscall.SIGUSR1 }\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, system := range []string{"linux", "freebsd"} {
		if err := check(system, "amd64"); err != nil {
			t.Errorf("%s: %v, want no mistake", system, err)
		}
	}
	if err := check("windows", "amd64"); err == nil || !strings.Contains(err.Error(), "SIGUSR1") {
		t.Errorf("windows: %v, want that SIGUSR1 is not there", err)
	}
}
