package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// component is a library that is part of headgate: a Go module or a package of npm.
type component struct {
	name, version string
	dir           string // where its files are
	npm           bool
}

// licenseNames are the names of files, in capitals, that begin those of license texts.
var licenseNames = []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"}

// collectNotices writes the license texts of everything that is linked into a binary or
// bundled into the console. A component without one fails the release.
func (r *release) collectNotices() error {
	components, err := r.modules()
	if err != nil {
		return err
	}
	packages, err := r.npmPackages()
	if err != nil {
		return err
	}
	goroot, err := output(r.root, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	toolchain, err := output(r.root, "go", "env", "GOVERSION")
	if err != nil {
		return err
	}
	all := append([]component{{name: "Go", version: toolchain, dir: goroot}}, append(components, packages...)...)
	var b bytes.Buffer
	b.WriteString("headgate contains the software that is listed here, under the licenses that follow each name.\n")
	for _, c := range all {
		texts, err := c.licenses()
		if errors.Is(err, errNoLicense) { // its package has none: packaging/licenses may
			var text []byte
			if text, err = os.ReadFile(filepath.Join(r.root, "packaging/licenses", filepath.FromSlash(c.name))); err != nil {
				err = fmt.Errorf("%s %s has no license file: %w", c.name, c.version, err)
			}
			texts = [][]byte{text}
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "\n%s\n%s %s\n%[1]s\n", strings.Repeat("=", 80), c.name, c.version)
		for _, text := range texts {
			fmt.Fprintf(&b, "\n%s\n", bytes.TrimSpace(text))
		}
	}
	name := r.inWork("THIRD_PARTY_NOTICES")
	if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.out, "THIRD_PARTY_NOTICES"), b.Bytes(), 0o644); err != nil {
		return err
	}
	return compressFile(name, name+".gz")
}

// errNoLicense is the error of a component that has no file with a license.
var errNoLicense = errors.New("no license file")

// licenses returns the license texts of a component, or errNoLicense.
func (c component) licenses() (texts [][]byte, err error) {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !slices.ContainsFunc(licenseNames, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(c.dir, e.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return nil, errNoLicense
	}
	return texts, nil
}

// modules returns the Go modules that are linked into any of the binaries.
func (r *release) modules() ([]component, error) {
	linked := map[string]string{}
	for _, t := range r.targets {
		info, err := buildinfo.ReadFile(r.binary(t))
		if err != nil {
			return nil, err
		}
		for _, m := range info.Deps {
			if m.Replace != nil {
				return nil, fmt.Errorf("module %s is replaced", m.Path)
			}
			linked[m.Path] = m.Version
		}
	}
	text, err := output(r.root, "go", "list", "-m", "-f", "{{.Path}}\t{{.Version}}\t{{.Dir}}", "all")
	if err != nil {
		return nil, err
	}
	var all []component
	for line := range strings.Lines(text) {
		words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if version, ok := linked[words[0]]; ok && version == words[1] {
			all = append(all, component{name: words[0], version: version, dir: words[2]})
		}
	}
	if len(all) != len(linked) {
		return nil, fmt.Errorf("%d modules are linked, and %d of them are in go.mod", len(linked), len(all))
	}
	return all, nil
}

// npmPackages returns the packages that the bundler has put into the console. It lists
// them itself: see web/vite.config.ts.
func (r *release) npmPackages() (all []component, err error) {
	data, err := os.ReadFile(filepath.Join(r.root, "web/bundled.json"))
	if err != nil {
		return nil, err
	}
	var folders []string
	if err := json.Unmarshal(data, &folders); err != nil {
		return nil, err
	}
	for _, folder := range folders {
		dir := filepath.Join(r.root, "web", folder)
		data, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err != nil {
			return nil, err
		}
		var p struct{ Name, Version string }
		if err := json.Unmarshal(data, &p); err != nil {
			return nil, err
		}
		all = append(all, component{name: p.Name, version: p.Version, dir: dir, npm: true})
	}
	slices.SortFunc(all, func(a, b component) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.version, b.version))
	})
	if len(all) == 0 {
		return nil, errors.New("web/bundled.json is empty")
	}
	return all, nil
}

// writeSBOMs writes a list of the components of each binary, in the CycloneDX format. The
// modules come from the binary, and the packages of the console are added.
func (r *release) writeSBOMs() error {
	packages, err := r.npmPackages()
	if err != nil {
		return err
	}
	tool, err := output(filepath.Join(r.root, "tools"), "go", "tool", "-n", "cyclonedx-gomod")
	if err != nil {
		return err
	}
	for _, t := range r.targets {
		name := r.artifact(t.label() + ".cdx.json")
		cmd := exec.Command(tool, "bin", "-json", "-noserial", "-notimestamp", "-version", "v"+r.version, "-output", name, r.binary(t))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("cyclonedx-gomod: %w: %s", err, out)
		}
		if err := addComponents(name, packages); err != nil {
			return err
		}
	}
	return nil
}

// addComponents adds packages of npm to an SBOM.
func addComponents(name string, packages []component) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var bom map[string]any
	if err := json.Unmarshal(data, &bom); err != nil {
		return err
	}
	list, ok := bom["components"].([]any)
	if !ok {
		return fmt.Errorf("%s has no components", name)
	}
	for _, p := range packages {
		url := "pkg:npm/" + strings.Replace(p.name, "@", "%40", 1) + "@" + p.version
		list = append(list, map[string]any{"type": "library", "name": p.name, "version": p.version, "purl": url, "bom-ref": url, "scope": "required"})
	}
	bom["components"] = list
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(bom); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}
