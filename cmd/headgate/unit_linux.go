package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// unitProblems returns what only a restart applies of the systemd unit whose main process
// this is: its files were changed after systemd started it. A process that has replaced
// another one is in the unit as that was started.
func unitProblems(ctx context.Context, pid int) (problems []string) {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil
	}
	unit := unitOf(string(groups))
	if unit == "" {
		return nil
	}
	out, err := exec.CommandContext(ctx, "systemctl", "show", unit,
		"--property=MainPID,NeedDaemonReload,InactiveExitTimestampMonotonic,FragmentPath,DropInPaths,EnvironmentFiles").Output()
	if err != nil {
		return nil // another service manager
	}
	return unitChanges(unit, pid, string(out))
}

// unitChanges is unitProblems for the properties of a unit as systemctl prints them.
func unitChanges(unit string, pid int, properties string) (problems []string) {
	has := map[string]string{}
	for line := range strings.Lines(properties) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		has[name] = strings.TrimSpace(has[name] + " " + value) // there may be several files
	}
	if has["MainPID"] != strconv.Itoa(pid) {
		return nil // a process of another machine or container that has the same number
	}
	started, ok := wallTime(has["InactiveExitTimestampMonotonic"])
	if !ok {
		return nil
	}
	for _, path := range strings.Fields(has["FragmentPath"] + " " + has["DropInPaths"] + " " + has["EnvironmentFiles"]) {
		info, err := os.Stat(path)
		if err == nil && !info.IsDir() && info.ModTime().After(started) {
			problems = append(problems, fmt.Sprintf("%s was changed after headgate was started; only a restart applies it: systemctl restart %s", path, unit))
		}
	}
	if len(problems) == 0 && has["NeedDaemonReload"] == "yes" {
		problems = append(problems, fmt.Sprintf("%s was changed, and systemd has not read it; only a restart applies it: systemctl daemon-reload; systemctl restart %[1]s", unit))
	}
	return problems
}

// wallTime returns a moment that systemd prints as microseconds of the monotonic clock.
func wallTime(monotonic string) (time.Time, bool) {
	at, err := strconv.ParseInt(monotonic, 10, 64)
	var now unix.Timespec
	if err != nil || at <= 0 || unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) != nil {
		return time.Time{}, false
	}
	return time.Now().Add(time.Duration(at)*time.Microsecond - time.Duration(now.Nano())), true
}

// unitOf returns the service in the control groups of a process, "" if it is in none.
func unitOf(groups string) string {
	for line := range strings.Lines(groups) {
		for _, part := range strings.Split(strings.TrimSpace(line), "/") {
			if strings.HasSuffix(part, ".service") && !strings.HasPrefix(part, "user@") {
				return part
			}
		}
	}
	return ""
}
