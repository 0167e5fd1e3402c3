package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// distFolder is where the console is built to, and embedded from.
const distFolder = "internal/admin/console/dist"

// buildConsole builds the console from its sources and the packages of its lock file.
func (r *release) buildConsole() error {
	if err := os.RemoveAll(filepath.Join(r.root, distFolder)); err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(r.root, ".ci/console"), "build")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// buildBinaries builds headgate for all targets, and makes sure that the console is in it.
func (r *release) buildBinaries() error {
	for _, t := range r.targets {
		if err := r.buildBinary(t, r.binary(t)); err != nil {
			return err
		}
		if err := r.hasConsole(r.binary(t)); err != nil {
			return fmt.Errorf("%v: %w", t, err)
		}
		how, err := r.servesConsole(t)
		if err != nil {
			return fmt.Errorf("%v: %w", t, err)
		}
		log.Printf("%-10s %v: %s", "", t, how)
	}
	return nil
}

// buildBinary builds headgate for a target. The environment of the caller changes nothing.
func (r *release) buildBinary(t target, name string) error {
	flags := fmt.Sprintf("-s -w -buildid= -X main.version=%s -X main.buildCommit=%s -X main.buildTime=%s -X main.homepage=%s",
		r.version, r.commit, r.time.Format(time.RFC3339), r.homepage)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", name, "./cmd/headgate")
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, os.Stderr, os.Stderr
	cmd.Env = append(os.Environ(), "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM=7", "GOARM64=v8.0",
		"CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOTOOLCHAIN=local", "GOWORK=off")
	return cmd.Run()
}

// hasConsole reports an error unless the files of the console are in the binary. It works
// for systems that cannot be run here.
func (r *release) hasConsole(name string) error {
	binary, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	dist := filepath.Join(r.root, distFolder)
	pages, err := filepath.Glob(filepath.Join(dist, "assets", "*.js*")) // most are there compressed only
	if err != nil {
		return err
	}
	if len(pages) == 0 {
		return errors.New("the console was not built")
	}
	for _, page := range append(pages, filepath.Join(dist, "index.html")) {
		data, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		if !bytes.Contains(binary, data) {
			return fmt.Errorf("%s of the console is not in the binary", filepath.Base(page))
		}
	}
	return nil
}

// emulator returns the program that runs binaries of a target here: "" for none.
func emulator(t target) (name string, ok bool) {
	if t == host() {
		return "", true
	}
	if t.os != "linux" || host().os != "linux" {
		return "", false
	}
	for _, end := range []string{"", "-static"} {
		name := "qemu-" + map[string]string{"amd64": "x86_64", "arm64": "aarch64", "arm": "arm"}[t.arch] + end
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}

// servesConsole starts the binary of a target where this machine can, and opens the
// console as a browser does. It returns what was checked.
func (r *release) servesConsole(t target) (string, error) {
	program, ok := emulator(t)
	if !ok {
		return "the console is in the binary; no emulator to run it here", nil
	}
	dir, err := os.MkdirTemp("", "release")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	address := l.Addr().String()
	l.Close()
	args := []string{r.binary(t), "run", "--state", filepath.Join(dir, "state"), "--admin-address", address}
	if program != "" {
		args = append([]string{program}, args...)
	}
	var text bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &text, &text
	cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	err = opensConsole("http://" + address)
	_ = cmd.Process.Kill() // it has served its purpose
	_ = cmd.Wait()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, &text)
	}
	if program != "" {
		return "serves the console under " + filepath.Base(program), nil
	}
	return "serves the console", nil
}

// opensConsole gets the first page of the console and a script that it names.
func opensConsole(base string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // emulation is slow
	defer cancel()
	var page string
	for {
		var err error
		if page, err = get(ctx, base+"/"); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
	_, rest, ok := strings.Cut(page, `src="/assets/`)
	script, _, _ := strings.Cut(rest, `"`)
	if !ok {
		return errors.New("the page at / is not the console")
	}
	_, err := get(ctx, base+"/assets/"+script)
	return err
}

// get returns the body of a page, if the status is 200.
func get(ctx context.Context, url string) (string, error) {
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	rq.Header.Set("Accept", "text/html")
	rs, err := http.DefaultClient.Do(rq)
	if err != nil {
		return "", err
	}
	defer rs.Body.Close()
	body, err := io.ReadAll(rs.Body)
	if err == nil && rs.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s: %s", url, rs.Status)
	}
	return string(body), err
}

// writePages has headgate write its manual pages and shell completions.
func (r *release) writePages() error {
	program := r.binary(host())
	if _, err := os.Stat(program); err != nil { // not one of the targets
		program = r.inWork("headgate-of-this-machine")
		if err := r.buildBinary(host(), program); err != nil {
			return err
		}
	}
	man, completions := r.inWork("man"), r.inWork("completions")
	if err := errors.Join(os.MkdirAll(man, 0o755), os.MkdirAll(completions, 0o755)); err != nil {
		return err
	}
	cmd := exec.Command(program, "man", man)
	cmd.Env = append(os.Environ(), fmt.Sprint("SOURCE_DATE_EPOCH=", r.time.Unix()))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	pages, err := filepath.Glob(filepath.Join(man, "*.1"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		if err := compressFile(page, page+".gz"); err != nil {
			return err
		}
		if err := os.Remove(page); err != nil {
			return err
		}
	}
	for shell, name := range map[string]string{"bash": "headgate.bash", "zsh": "_headgate", "fish": "headgate.fish"} {
		text, err := output(r.root, program, "completion", shell)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(completions, name), []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	debian := fmt.Sprintf("headgate (%s-1) stable; urgency=medium\n\n  * Release %[1]s; see changelog.gz.\n\n -- headgate maintainers <maintainers@headgate.invalid>  %s\n",
		strings.Replace(r.version, "-", "~", 1), r.time.Format(time.RFC1123Z))
	if err := os.WriteFile(r.inWork("changelog.Debian.gz"), compressed([]byte(debian)), 0o644); err != nil {
		return err
	}
	return compressFile(filepath.Join(r.root, "CHANGELOG.md"), r.inWork("changelog.gz"))
}
