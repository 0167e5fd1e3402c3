package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// facts tells when, where and with what a table was made.
func facts(b *bench) []string {
	list := []string{
		"Date: " + time.Now().UTC().Format("2006-01-02"),
		"Machine: " + machine(),
		"Versions: " + strings.Join(versions(b), ", "),
		fmt.Sprintf("Proxy on core %d, load on core %d, upstream on core %d",
			b.options.proxyCPU, b.options.loadCPU, b.options.upstreamCPU),
	}
	for _, p := range b.peers {
		if !p.quic {
			list = append(list, fmt.Sprintf("No rows of HTTP/3 for %s: it is built without (%s lacks %s)", p.name, p.about, strings.TrimSpace(p.quicWord)))
		}
	}
	for _, r := range b.rates {
		list = append(list, fmt.Sprintf("Latency of %s at %.0f requests a second; without any proxy, over HTTP/1.1, its p99 is %s µs", r.protocol, r.rate, short(r.floor)))
	}
	return list
}

func machine() string {
	model := "unknown processor"
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		model = cpuModel(string(text))
	}
	kernel := "Linux"
	var name unix.Utsname
	if err := unix.Uname(&name); err == nil {
		kernel += " " + kernelVersion(unix.ByteSliceToString(name.Release[:]))
	}
	return fmt.Sprintf("%s, %d cores, %s, %s", model, runtime.NumCPU(), runtime.GOARCH, kernel)
}

// versionIn finds a version in what a program says of itself.
var versionIn = regexp.MustCompile(`[0-9]+\.[0-9]+(\.[0-9]+)?\S*`)

func versions(b *bench) []string {
	var list []string
	for _, p := range b.peers {
		switch p.name {
		case "headgate", "before":
			list = append(list, p.name+" "+firstLine(p.program, "version"))
		case "net/http":
			list = append(list, "net/http of "+runtime.Version())
		default:
			list = append(list, p.name+" "+versionIn.FindString(firstLine(p.program, "-v")))
		}
	}
	list = append(list, "wrk "+versionIn.FindString(firstLine("wrk", "-v")))
	if version := versionIn.FindString(firstLine("h2load", "--version")); version != "" {
		list = append(list, "h2load "+strings.TrimPrefix(version, "nghttp2/"))
	}
	return list
}

// firstLine returns the first line that a program prints. How it exits does not
// matter: wrk -v fails.
func firstLine(program, arg string) string {
	line, _, _ := strings.Cut(saidWhole(program, arg), "\n")
	return strings.TrimSpace(strings.TrimPrefix(line, "headgate "))
}

// saidWhole returns all that a program prints.
func saidWhole(program, arg string) string {
	path, err := lookPath(program)
	if err != nil {
		return ""
	}
	out, _ := exec.Command(path, arg).CombinedOutput()
	return string(out)
}
