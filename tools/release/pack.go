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
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // the same
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
	if format == "rpm" {
		if info.Contents, err = markDocumentation(info.Contents); err != nil {
			return err
		}
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

// markDocumentation marks the files that an installation without documentation leaves out, as
// rpmbuild does by their place. nfpm takes no patterns for files of this type.
func markDocumentation(contents files.Contents) (marked files.Contents, err error) {
	for _, c := range contents {
		if !strings.HasPrefix(c.Destination, "/usr/share/man/") && !strings.HasPrefix(c.Destination, "/usr/share/doc/") {
			marked = append(marked, c)
			continue
		}
		sources, err := filepath.Glob(c.Source)
		if err != nil {
			return nil, err
		}
		for _, source := range sources {
			page := *c
			page.Source, page.Type = source, files.TypeRPMDoc
			if source != c.Source {
				page.Destination = filepath.Join(c.Destination, filepath.Base(source))
			}
			marked = append(marked, &page)
		}
	}
	return marked, nil
}
