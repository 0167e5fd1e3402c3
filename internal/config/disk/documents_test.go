package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/config"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDocumentsOfAFolderComeInTheOrderOfTheirNames(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "20-shop.yaml", "shop")
	write(t, dir, "10-ports.yaml", "ports")
	write(t, dir, ".30-swap.yaml", "an editor's")
	write(t, dir, "40.yaml~", "an editor's")
	write(t, dir, "cert.pem", "a certificate")
	docs, err := Documents(dir)
	if err != nil || docs.Dir != dir || len(docs.List) != 2 {
		t.Fatalf("%+v, %v", docs, err)
	}
	for i, want := range []string{"10-ports.yaml", "20-shop.yaml"} {
		if got := docs.List[i].Name; got != filepath.Join(dir, want) {
			t.Errorf("document %d is %s, want %s", i, got, want)
		}
	}
	docs, err = Documents(filepath.Join(dir, "20-shop.yaml"))
	if err != nil || docs.Dir != dir || len(docs.List) != 1 || string(docs.List[0].Data) != "shop" {
		t.Errorf("one file: %+v, %v", docs, err)
	}
}

func TestFoldersThatAreNoConfigurationAreRefused(t *testing.T) {
	empty, full, odd, other := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	write(t, other, "shop.yml", "version: 1\n")
	for i := range config.MaxDocuments + 1 {
		write(t, full, fmt.Sprintf("%03d.yaml", i), "version: 1\n")
	}
	if err := os.Symlink(filepath.Join(odd, "absent"), filepath.Join(odd, "a.yaml")); err != nil {
		t.Skip(err)
	}
	for dir, want := range map[string]string{
		empty: "has no .yaml file; name the folder or the file with the configuration", other: "rename shop.yml to shop.yaml",
		full: "has 201 .yaml files, at most 200 are allowed; put several objects into one file", odd: "a.yaml: no such file",
		filepath.Join(empty, "absent"): "no such file",
	} {
		if docs, err := Documents(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d documents and %v, want an error with %q", len(docs.List), err, want)
		}
	}
}
