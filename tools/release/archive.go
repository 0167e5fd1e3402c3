package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// member is a file or a folder of an archive.
type member struct {
	name string // a slash at the end makes it a folder
	data []byte
	mode fs.FileMode
	uid  int // owner and group
}

// writeArchives writes the archives for people who install without a package.
func (r *release) writeArchives() error {
	common, err := r.commonMembers()
	if err != nil {
		return err
	}
	for _, t := range r.targets {
		program, err := os.ReadFile(r.binary(t))
		if err != nil {
			return err
		}
		members := append([]member{{name: t.program(), data: program, mode: 0o755}}, common...)
		if t.os == "linux" {
			unit, err := os.ReadFile(filepath.Join(r.root, "packaging/headgate.service"))
			if err != nil {
				return err
			}
			members = append(members, member{name: "headgate.service", data: unit, mode: 0o644})
		}
		folder := "headgate_" + r.version + "_" + t.label()
		for i := range members {
			members[i].name = folder + "/" + members[i].name
		}
		if t.os == "windows" {
			err = writeZip(r.artifact(t.label()+".zip"), members, r.time)
		} else {
			err = writeTarGz(r.artifact(t.label()+".tar.gz"), members, r.time)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// commonMembers returns what is in all archives.
func (r *release) commonMembers() (all []member, err error) {
	for name, from := range map[string]string{
		"LICENSE": "LICENSE", "CHANGELOG.md": "CHANGELOG.md", "UPGRADING.md": "UPGRADING.md",
		"headgate.yaml": "packaging/headgate.yaml",
	} {
		data, err := os.ReadFile(filepath.Join(r.root, from))
		if err != nil {
			return nil, err
		}
		all = append(all, member{name: name, data: data, mode: 0o644})
	}
	for _, dir := range []string{"man", "completions"} {
		entries, err := os.ReadDir(r.inWork(dir))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(r.inWork(dir), e.Name()))
			if err != nil {
				return nil, err
			}
			all = append(all, member{name: dir + "/" + e.Name(), data: data, mode: 0o644})
		}
	}
	data, err := os.ReadFile(r.inWork("THIRD_PARTY_NOTICES"))
	all = append(all, member{name: "THIRD_PARTY_NOTICES", data: data, mode: 0o644})
	return all, err
}

// tarOf returns a tar archive. Its members are sorted, so that it is the same each time.
func tarOf(members []member, when time.Time) ([]byte, error) {
	members = slices.Clone(members)
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: int64(m.mode.Perm()), Uid: m.uid, Gid: m.uid, Size: int64(len(m.data)), ModTime: when, Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if m.mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		if strings.HasSuffix(m.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := t.Write(m.data); err != nil {
			return nil, err
		}
	}
	err := t.Close()
	return b.Bytes(), err
}

func writeTarGz(name string, members []member, when time.Time) error {
	data, err := tarOf(members, when)
	if err != nil {
		return err
	}
	return os.WriteFile(name, compressed(data), 0o644)
}

func writeZip(name string, members []member, when time.Time) error {
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: when}
		h.SetMode(m.mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := w.Write(m.data); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// compressed returns data in the gzip format, without a name and a time in it.
func compressed(data []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(data)
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("gzip into memory: %v", err)) // memory does not fail
	}
	return b.Bytes()
}

// compressFile writes a compressed copy of a file.
func compressFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, compressed(data), 0o644)
}

// folder returns members for a path and all folders above it.
func folders(names ...string) (all []member) {
	seen := map[string]bool{}
	for _, name := range names {
		for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if !seen[dir] {
				seen[dir] = true
				all = append(all, member{name: dir + "/", mode: 0o755})
			}
		}
	}
	return all
}
