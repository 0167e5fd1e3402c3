package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/client"
	"headgate/internal/store/local"
	"headgate/internal/upgrade"
)

// checkTime is how long the new binary may take to answer.
const checkTime = 30 * time.Second

func newUpgrade() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Replace the running process with the binary now on disk",
		Long: `upgrade replaces the running headgate with a process that runs the binary now on disk. No
connection is closed: the new process takes over the sockets, and the old one completes what
is in progress, for at most admin.upgrade_drain. The running headgate starts the new process,
from the path that it was itself started from, with the same arguments, user and environment.

If the new process cannot serve within 20 seconds, it ends, the running one continues, and
the command reports why. During the upgrade, changes are rejected with 503.

While a process that was replaced still has connections, another upgrade is refused; --force
closes them. --check only checks whether the new binary can take over: it reports fields of
the configuration that the binary rejects, a newer state directory, and changes of the
systemd unit, which need a restart. Signal SIGUSR2 does the same as this command.

The machines of a pair are upgraded one after the other, the follower first. In a container,
headgate is the first process and cannot be replaced: start a container with the
new version, and stop this one.` + reachHelp,
		Example: `  headgate upgrade --check
  headgate upgrade`,
		Args: noArguments,
	}
	r, output := addReach(cmd), addOutput(cmd)
	check := cmd.Flags().Bool("check", false, "check whether the new binary can take over, without changing anything")
	force := cmd.Flags().Bool("force", false, "close the connections of a process that was replaced before")
	why := cmd.Flags().String("why", "", "`TEXT` recorded in the audit log")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		to, err := r.open(cmd.Context())
		if err != nil {
			return err
		}
		defer to.close()
		if *check {
			var found upgrade.Check
			if err := to.Do(cmd.Context(), http.MethodPost, "/upgrade/check", map[string]any{}, &found); err != nil {
				return err
			}
			found.Problems = append(found.Problems, unitProblems(cmd.Context(), found.PID)...)
			return reportCheck(cmd, output.value, found)
		}
		var out upgrade.Result
		if err := to.Do(cmd.Context(), http.MethodPost, "/upgrade", &client.UpgradeInput{Force: *force, Why: *why}, &out); err != nil {
			return err
		}
		if output.value == "json" {
			return writeJSON(cmd, out)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "headgate %s serves as process %d after %s; the process before (%s) completes %d connections\n",
			printable(out.Version), out.PID, time.Duration(out.Took*float64(time.Second)).Round(time.Millisecond), printable(out.From), out.Connections)
		return err
	}
	return cmd
}

// reportCheck prints the result of a check. Problems make the command fail.
func reportCheck(cmd *cobra.Command, format string, c upgrade.Check) error {
	var err error
	if format == "json" {
		err = writeJSON(cmd, c)
	} else if len(c.Problems) == 0 {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "headgate %s can take over from %s\n", printable(c.Version), printable(c.From))
	} else {
		for _, p := range c.Problems {
			fmt.Fprintln(cmd.OutOrStdout(), printable(p))
		}
	}
	if err == nil && len(c.Problems) > 0 {
		return &exitError{exitInvalid, fmt.Errorf("headgate %s cannot take over from %s", c.Version, c.From)}
	}
	return err
}

// Check runs the binary now on disk against the present configuration and state.
func (r *replacer) Check(ctx context.Context, config string) upgrade.Check {
	c := upgrade.Check{PID: os.Getpid(), From: thisBuild().Version}
	problem := func(format string, args ...any) { c.Problems = append(c.Problems, fmt.Sprintf(format, args...)) }
	if err := r.possible(); err != nil {
		problem("%v", err)
	}
	if text := capabilityProblem(r.program); text != "" {
		problem("%s", text)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, r.program, "version", "-o", "json").Output()
	var b buildInfo
	if err == nil {
		err = json.Unmarshal(out, &b)
	}
	if err != nil {
		problem("%s cannot be run: %v", r.program, err)
		return c
	}
	c.Version = b.Version
	switch {
	case b.Upgrade == 0:
		problem("headgate %s cannot take over from a running process: restart instead", b.Version)
	case !upgrade.Readable(b.Upgrade, b.UpgradeFrom):
		problem("headgate %s and %s do not understand each other's upgrade messages: restart instead", b.Version, c.From)
	}
	if b.State < local.Version {
		problem("the state directory has version %d, headgate %s knows versions up to %d: it is too old", local.Version, b.Version, b.State)
	}
	for _, line := range rejected(ctx, r.program, config) {
		problem("headgate %s rejects the configuration: %s", b.Version, line)
	}
	return c
}

// rejected returns the output of a binary that rejects a configuration.
func rejected(ctx context.Context, program, config string) []string {
	out, err := exec.CommandContext(ctx, program, "validate", "--config", config).CombinedOutput()
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return slices.DeleteFunc(lines, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// possible reports why no process can be replaced here.
func (r *replacer) possible() error {
	switch {
	case !upgrade.Supported:
		return upgrade.Refuse("unsupported", "this system cannot replace a running process without closing its sockets", "restart headgate")
	case os.Getpid() == 1:
		return upgrade.Refuse("first_process", "headgate is the first process of its container, which ends with it", "start a container with the new version, then stop this one: it completes the requests in progress")
	case r.program == "":
		return errors.New("the path of the binary is unknown: restart headgate")
	}
	return nil
}
