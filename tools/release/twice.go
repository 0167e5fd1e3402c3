package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// buildTwice builds the last commit in two folders, from npm ci on, and compares every
// file. The second build has an empty cache unless shared is set. The files of the first
// become the release.
func (r *release) buildTwice(shared bool) error {
	base, err := os.MkdirTemp("", "headgate-release-")
	if err != nil {
		return err
	}
	// Go makes the files of its module cache read-only, but not those of its build cache.
	defer os.RemoveAll(base)
	if changed, err := output(r.root, "git", "status", "--porcelain"); err == nil && changed != "" {
		log.Print("there are changes that are not committed; they are not part of the release")
	}
	var results [2]string
	for i, folder := range []string{"first", "a-second-folder"} {
		source := filepath.Join(base, folder)
		results[i] = filepath.Join(base, folder+"-dist")
		if err := export(r.root, r.commit, source); err != nil {
			return err
		}
		var env []string
		if i == 1 && !shared {
			env = []string{"GOCACHE=" + filepath.Join(base, "cache")}
		}
		log.Printf("build %d of 2", i+1)
		if err := r.buildIn(source, results[i], env); err != nil {
			return err
		}
	}
	if err := compareFolders(results[0], results[1]); err != nil {
		return err
	}
	log.Print("both builds are the same, byte for byte")
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	if err := os.CopyFS(r.out, os.DirFS(results[0])); err != nil {
		return err
	}
	return r.sign()
}

// export writes the files of a commit into a folder.
func export(root, commit, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	archive := to + ".tar"
	if _, err := output(root, "git", "archive", "--output", archive, commit); err != nil {
		return err
	}
	defer os.Remove(archive)
	_, err := output(to, "tar", "-xf", archive)
	return err
}

// buildIn builds a release in a folder, by this program in another process.
func (r *release) buildIn(source, out string, env []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var targets []string
	for _, t := range r.targets {
		targets = append(targets, t.String())
	}
	cmd := exec.Command(self, "-version", r.version, "-root", source, "-out", out, "-commit", r.commit, "-epoch", fmt.Sprint(r.time.Unix()),
		"-url", r.homepage, "-targets", strings.Join(targets, ","), "-key", r.key, "all")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), env...)
	return cmd.Run()
}

// compareFolders fails with the names of all files that differ.
func compareFolders(a, b string) error {
	first, err := sums(a)
	if err != nil {
		return err
	}
	second, err := sums(b)
	if err != nil {
		return err
	}
	var differ []string
	for name, sum := range first {
		if second[name] != sum {
			differ = append(differ, name)
		}
	}
	for name := range second {
		if _, ok := first[name]; !ok {
			differ = append(differ, name)
		}
	}
	slices.Sort(differ)
	if len(differ) > 0 {
		return fmt.Errorf("the two builds differ in %s", strings.Join(differ, ", "))
	}
	return nil
}

// sums returns the checksums of the files of a folder by their names, but not that of the
// signature.
func sums(dir string) (map[string]string, error) {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == signatureName {
			return err
		}
		sum, err := sumOf(path)
		all[strings.TrimPrefix(path, dir)] = sum
		return err
	})
	return all, err
}
