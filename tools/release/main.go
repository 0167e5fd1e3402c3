// Command release makes what a release of headgate consists of: binaries, archives, Linux
// packages, the container image, lists of what is inside, checksums and the installer.
//
//	release -version 1.2.3 all            build from the files in this folder into dist/
//	release -version 1.2.3 -twice all     build the last commit twice, and compare
//	release -version 1.2.3 binaries image only these steps, and those that they need
//
// Nothing in the result depends on the machine, the folder or the time: files carry the
// time of the commit, and the versions of Go and Node are those of .tool-versions. It does
// not publish or tag anything. "make release" runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// release is one release in the making. It does not change after newRelease.
type release struct {
	root     string    // the folder with the sources
	out      string    // where the files of the release go
	work     string    // binaries and other files that are parts of them
	version  string    // without v
	commit   string    // in hexadecimal
	time     time.Time // of the commit
	homepage string    // without a slash at the end
	key      string    // a PEM file; "" leaves the checksums unsigned
	targets  []target
}

// target is a system that headgate is built for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// label is the target as file names have it: linux_armv7.
func (t target) label() string {
	if t.arch == "arm" {
		return t.os + "_armv7"
	}
	return t.os + "_" + t.arch
}

// program is the name of the binary.
func (t target) program() string {
	if t.os == "windows" {
		return "headgate.exe"
	}
	return "headgate"
}

// allTargets are those of a whole release.
var allTargets = []target{
	{"linux", "amd64"}, {"linux", "arm64"}, {"linux", "arm"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"freebsd", "amd64"}, {"windows", "amd64"},
}

// step is a part of a release. Steps run in the order of the list; files that a step
// needs from an earlier one are in the folder work.
type step struct {
	name string
	run  func(*release) error
}

var steps = []step{
	{"toolchain", (*release).checkToolchain},
	{"console", (*release).buildConsole},
	{"binaries", (*release).buildBinaries},
	{"notices", (*release).collectNotices},
	{"pages", (*release).writePages},
	{"archives", (*release).writeArchives},
	{"packages", (*release).writePackages},
	{"image", (*release).writeImage},
	{"sbom", (*release).writeSBOMs},
	{"checksums", (*release).writeChecksums},
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("release: ")
	version := flag.String("version", "", "`VERSION` of the release, such as 1.2.3")
	root := flag.String("root", ".", "`FOLDER` with the sources")
	out := flag.String("out", "dist", "`FOLDER` for the result")
	commit := flag.String("commit", "", "`COMMIT` that the sources are; the default is the last one of the folder")
	epoch := flag.Int64("epoch", 0, "time of the commit in `SECONDS` since 1970; the default is that of the last one")
	homepage := flag.String("url", "", "`URL` of the project; the default is in packaging/homepage")
	targets := flag.String("targets", "", "build only these, such as `linux/amd64,darwin/arm64`")
	key := flag.String("key", "", "PEM `FILE` with an ECDSA key that signs the checksums")
	twice := flag.Bool("twice", false, "build the last commit in two folders, and fail where the results differ")
	shared := flag.Bool("shared-cache", false, "with -twice, let both builds use the same cache: faster, and a weaker test")
	flag.Parse()

	r, err := newRelease(*version, *root, *out, *commit, *epoch, *homepage, *targets, *key)
	if err == nil && *twice {
		err = r.buildTwice(*shared)
	} else if err == nil {
		err = r.run(flag.Args())
	}
	if err != nil {
		log.Fatal(err)
	}
}

func newRelease(version, root, out, commit string, epoch int64, homepage, targets, key string) (*release, error) {
	if !regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.]+)?$`).MatchString(version) {
		return nil, fmt.Errorf("VERSION is %q, and must be like 1.2.3 or 1.2.3-rc.1", version)
	}
	r := &release{version: version, commit: commit, homepage: homepage, key: key, targets: allTargets}
	var err error
	if r.root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	if r.out, err = filepath.Abs(out); err != nil {
		return nil, err
	}
	r.work = r.out + ".work"
	if commit == "" {
		if r.commit, err = output(r.root, "git", "rev-parse", "HEAD"); err != nil {
			return nil, err
		}
	}
	if epoch == 0 {
		text, err := output(r.root, "git", "log", "-1", "--format=%ct")
		if err != nil {
			return nil, err
		}
		if epoch, err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, err
		}
	}
	r.time = time.Unix(epoch, 0).UTC()
	if homepage == "" {
		text, err := os.ReadFile(filepath.Join(r.root, "packaging/homepage"))
		if err != nil {
			return nil, err
		}
		r.homepage = strings.TrimSpace(string(text))
	}
	if targets != "" {
		r.targets = nil
		for name := range strings.SplitSeq(targets, ",") {
			i := slices.IndexFunc(allTargets, func(t target) bool { return t.String() == name })
			if i < 0 {
				return nil, fmt.Errorf("unknown target %q; targets are %v", name, allTargets)
			}
			r.targets = append(r.targets, allTargets[i])
		}
	}
	return r, nil
}

// run runs the named steps, or all.
func (r *release) run(names []string) error {
	for _, name := range names {
		if name != "all" && !slices.ContainsFunc(steps, func(s step) bool { return s.name == name }) {
			return fmt.Errorf("unknown step %q", name)
		}
	}
	if slices.Contains(names, "all") || len(names) == 0 {
		names = nil
		if err := errors.Join(os.RemoveAll(r.out), os.RemoveAll(r.work)); err != nil {
			return err
		}
	}
	if err := errors.Join(os.MkdirAll(r.out, 0o755), os.MkdirAll(r.work, 0o755)); err != nil {
		return err
	}
	for _, s := range steps {
		if names != nil && !slices.Contains(names, s.name) {
			continue
		}
		start := time.Now()
		if err := s.run(r); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		log.Printf("%-10s %6.1fs", s.name, time.Since(start).Seconds())
	}
	return nil
}

// checkToolchain compares the versions of Go and Node with those of .tool-versions: others
// would make other bytes.
func (r *release) checkToolchain() error {
	data, err := os.ReadFile(filepath.Join(r.root, ".tool-versions"))
	if err != nil {
		return err
	}
	golang, err := output(r.root, "go", "env", "GOVERSION")
	if err != nil {
		return err
	}
	node, err := output(r.root, "node", "--version")
	if err != nil {
		return err
	}
	have := map[string]string{"golang": strings.TrimPrefix(golang, "go"), "nodejs": strings.TrimPrefix(node, "v")}
	for line := range strings.Lines(string(data)) {
		name, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		if have[name] != want {
			return fmt.Errorf("%s is %s, and releases are built with %s (.tool-versions)", name, have[name], want)
		}
	}
	return nil
}

// inWork returns the path of a file in the folder work.
func (r *release) inWork(name string) string { return filepath.Join(r.work, name) }

// binary returns the path of the binary of a target.
func (r *release) binary(t target) string { return filepath.Join(r.work, t.label(), t.program()) }

// artifact returns the path of a file of the release: headgate_1.2.3_ and what it is.
func (r *release) artifact(what string) string {
	return filepath.Join(r.out, "headgate_"+r.version+"_"+what)
}

// host is the target that programs of this machine are built for.
func host() target { return target{runtime.GOOS, runtime.GOARCH} }

// output runs a program in a folder, and returns what it prints.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
