package main

import (
	"bytes"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// imageUser is the user and group of the image, as the Dockerfile has it.
const imageUser = 65532

// writeImage writes the container image of all Linux targets as one archive in the OCI
// layout. It holds what packaging/Dockerfile builds; a test compares both.
func (r *release) writeImage() error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		img, err := r.image(t)
		if err != nil {
			return err
		}
		platform := &v1.Platform{OS: t.os, Architecture: t.arch}
		if t.arch == "arm" {
			platform.Variant = "v7"
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
	}
	index = mutate.Annotations(index, r.imageLabels()).(v1.ImageIndex)
	dir := r.inWork("image")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	p, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := p.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": r.version})); err != nil {
		return err
	}
	return r.archiveLayout(dir, r.artifact("image.tar"))
}

// imageLabels are the labels of each image and the annotations of the index.
func (r *release) imageLabels() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "headgate",
		"org.opencontainers.image.version":  r.version,
		"org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.created":  r.time.Format("2006-01-02T15:04:05Z07:00"),
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.source":   r.homepage,
	}
}

// image returns the image of one target: one layer upon nothing.
func (r *release) image(t target) (v1.Image, error) {
	members, err := r.imageMembers(t)
	if err != nil {
		return nil, err
	}
	data, err := tarOf(members, r.time)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "make release"}})
	if err != nil {
		return nil, err
	}
	file := &v1.ConfigFile{
		OS: t.os, Architecture: t.arch, Created: v1.Time{Time: r.time},
		Config: v1.Config{
			User:         "65532:65532",
			Env:          []string{"HEADGATE_STATE=/var/lib/headgate", "HEADGATE_ADMIN_ADDRESS=0.0.0.0:9080", "ZONEINFO=/usr/share/zoneinfo.zip"},
			Entrypoint:   []string{"/usr/bin/headgate"},
			Cmd:          []string{"run"},
			Volumes:      map[string]struct{}{"/var/lib/headgate": {}},
			ExposedPorts: map[string]struct{}{"80/tcp": {}, "443/tcp": {}, "443/udp": {}, "9080/tcp": {}},
			StopSignal:   "SIGTERM",
			Labels:       r.imageLabels(),
		},
	}
	if t.arch == "arm" {
		file.Variant = "v7"
	}
	have, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file.RootFS, file.History = have.RootFS, have.History
	return mutate.ConfigFile(img, file)
}

// imageMembers returns the files of an image. Root certificates and time zones are those
// of Go modules and of the Go distribution, not of the machine.
func (r *release) imageMembers(t target) ([]member, error) {
	goroot, err := output(r.root, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	zones, err := os.ReadFile(filepath.Join(goroot, "lib/time/zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(r.binary(t))
	if err != nil {
		return nil, err
	}
	notices, err := os.ReadFile(r.inWork("THIRD_PARTY_NOTICES"))
	if err != nil {
		return nil, err
	}
	members := []member{
		{name: "usr/bin/headgate", data: program, mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", data: rootCertificates(), mode: 0o644},
		{name: "usr/share/zoneinfo.zip", data: zones, mode: 0o644},
		{name: "usr/share/doc/headgate/THIRD_PARTY_NOTICES", data: notices, mode: 0o644},
		{name: "etc/headgate/", mode: 0o755, uid: imageUser},
		{name: "var/lib/headgate/", mode: 0o700, uid: imageUser},
		{name: "tmp/", mode: 0o777 | fs.ModeSticky, uid: imageUser},
	}
	return append(members, folders("usr/bin/x", "etc/ssl/certs/x", "usr/share/doc/headgate/x", "var/lib/x")...), nil
}

// rootCertificates returns the authorities that browsers trust, as PEM. Those with
// constraints, which a PEM file cannot express, are left out.
func rootCertificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // memory does not fail
		}
	}
	return b.Bytes()
}

// archiveLayout writes a folder in the OCI layout as a tar archive.
func (r *release) archiveLayout(dir, name string) error {
	var members []member
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		inside, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		m := member{name: filepath.ToSlash(inside), mode: 0o644}
		if d.IsDir() {
			m.name, m.mode = strings.TrimSuffix(m.name, "/")+"/", 0o755
		} else if m.data, err = os.ReadFile(path); err != nil {
			return err
		}
		members = append(members, m)
		return nil
	})
	if err != nil {
		return err
	}
	data, err := tarOf(members, r.time)
	if err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}
