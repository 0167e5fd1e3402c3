package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/apk"  // registers its format
	_ "github.com/goreleaser/nfpm/v2/arch" // the same
	_ "github.com/goreleaser/nfpm/v2/deb"  // the same
	_ "github.com/goreleaser/nfpm/v2/rpm"  // the same
)

// writePackages writes a deb, an rpm, an apk and an Arch package for each Linux target, as
// packaging/nfpm.yaml describes them.
func (r *release) writePackages() error {
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm", "apk", "archlinux"} {
			if err := r.writePackage(t, format); err != nil {
				return fmt.Errorf("%s for %v: %w", format, t, err)
			}
		}
	}
	return nil
}

// writePackage writes one package. It is named as its format does.
func (r *release) writePackage(t target, format string) error {
	arch := t.arch
	if arch == "arm" {
		arch = "arm7"
	}
	variables := map[string]string{"ARCH": arch, "VERSION": r.version, "HOMEPAGE": r.homepage, "BINARY": r.binary(t), "WORK": r.work}
	if err := os.Chdir(r.root); err != nil { // paths in nfpm.yaml begin there
		return err
	}
	text, err := os.ReadFile("packaging/nfpm.yaml")
	if err != nil {
		return err
	}
	filled := os.Expand(string(text), func(name string) string { return variables[name] })
	config, err := nfpm.Parse(strings.NewReader(filled))
	if err != nil {
		return err
	}
	info, err := config.Get(format)
	if err != nil {
		return err
	}
	info.MTime = r.time
	if format == "deb" {
		info.License = "" // the file copyright has it, and a control file has no such field
	}
	nfpm.WithDefaults(info)
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	name := filepath.Join(r.out, packager.ConventionalFileName(info))
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	err = packager.Package(info, f)
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}
