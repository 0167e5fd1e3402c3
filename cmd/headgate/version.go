package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"headgate/internal/store/local"
	"headgate/internal/update"
	"headgate/internal/upgrade"
)

// The linker sets these in a release: -ldflags "-X main.version=1.2.3". Elsewhere they are
// what the go command records: the version of the module, and the commit it was built from.
var (
	version     string // such as 1.2.3
	buildCommit string // the commit, in hexadecimal
	buildTime   string // the time of that commit, in RFC 3339
	homepage    string // of the project, below which releases are published
)

// buildInfo describes this build.
type buildInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	// Latest is the version of the latest release, and Newer whether it is newer than this
	// one; absent unless they were asked for.
	Latest string `json:"latest,omitempty"`
	Newer  bool   `json:"newer,omitempty"`
	Go     string `json:"go"`
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	// Upgrade and UpgradeFrom are the versions of the messages by which a process takes
	// over from another, and State is that of the state directory.
	Upgrade     int `json:"upgrade_protocol"`
	UpgradeFrom int `json:"upgrade_readable_from"`
	State       int `json:"state_version"`
}

// thisBuild reads what the linker and the go command recorded.
func thisBuild() buildInfo {
	b := buildInfo{Version: version, Revision: buildCommit, Time: buildTime, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Upgrade: upgrade.Protocol, UpgradeFrom: upgrade.ReadableFrom, State: local.Version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if b.Version == "" {
		b.Version = info.Main.Version
	}
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "devel"
	}
	return b
}

// line is all of it on one line.
func (b buildInfo) line() string {
	revision := ""
	if b.Revision != "" {
		revision = fmt.Sprintf(" (%.12s)", b.Revision)
	}
	return fmt.Sprintf("headgate %s%s %s %s/%s", b.Version, revision, b.Go, b.OS, b.Arch)
}

// newUpdates returns a client that checks for the latest release.
func newUpdates() *update.Client {
	return update.NewClient(update.Source(homepage), "headgate/"+thisBuild().Version, nil)
}

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version",
		Long: `version shows which headgate this is. With --check it also looks where releases are published
whether there is a newer one. Nothing is installed, and nothing but the version is sent.`,
		Example: `  headgate version -o json
  headgate version --check`,
		Args: noArguments,
	}
	output := addOutput(cmd)
	check := cmd.Flags().Bool("check", false, "look whether there is a newer release")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b := thisBuild()
		if *check {
			client := newUpdates()
			defer client.Close()
			var err error
			if b.Latest, err = client.Latest(cmd.Context()); err != nil {
				return err
			}
			b.Newer = update.Newer(b.Latest, b.Version)
		}
		if output.value == "json" {
			return writeJSON(cmd, b)
		}
		fmt.Fprintln(cmd.OutOrStdout(), b.line())
		switch {
		case b.Newer:
			fmt.Fprintf(cmd.OutOrStdout(), "headgate %s is available: %s\n", b.Latest, homepage)
		case *check:
			fmt.Fprintln(cmd.OutOrStdout(), "this is the latest release")
		}
		return nil
	}
	return cmd
}

// writeJSON writes a value as an indented JSON document.
func writeJSON(cmd *cobra.Command, v any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	if err == nil {
		_, err = cmd.OutOrStdout().Write(plainJSON(b.Bytes()))
	}
	return err
}
