package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestChangedUnitIsReported holds that a check of an upgrade names the files of the systemd
// unit that were changed since systemd has started the unit, and no others.
func TestChangedUnitIsReported(t *testing.T) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	// The unit was started a second ago: the system may have started less than an hour ago.
	started := fmt.Sprint((time.Duration(now.Nano()) - time.Second).Microseconds())
	dir := t.TempDir()
	file := func(name string, age time.Duration) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		return path
	}
	same, changed := file("same.service", time.Hour), file("changed.service", -time.Hour)
	const mine, unit = 4711, "headgate.service"
	for _, c := range []struct {
		name, properties string
		want             []string // parts of the problems
	}{
		{"nothing was changed", "FragmentPath=" + same + "\nDropInPaths=\nEnvironmentFiles=" + same + " (ignore_errors=yes)\nNeedDaemonReload=no", nil},
		{"the unit", "FragmentPath=" + changed, []string{changed + " was changed after headgate was started; only a restart applies it: systemctl restart headgate.service"}},
		{"one of several drop-ins", "FragmentPath=" + same + "\nDropInPaths=" + same + " " + changed, []string{changed}},
		{"the second environment file", "EnvironmentFiles=" + same + " (ignore_errors=yes)\nEnvironmentFiles=" + changed + " (ignore_errors=no)", []string{changed}},
		{"a file that is not there", "EnvironmentFiles=" + filepath.Join(dir, "none") + " (ignore_errors=yes)", nil},
		{"systemd has not read it", "FragmentPath=" + same + "\nNeedDaemonReload=yes", []string{"systemctl daemon-reload"}},
	} {
		got := unitChanges(unit, mine, fmt.Sprintf("MainPID=%d\nInactiveExitTimestampMonotonic=%s\n%s\n", mine, started, c.properties))
		if len(got) != len(c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
			continue
		}
		for i := range got {
			if !strings.Contains(got[i], c.want[i]) {
				t.Errorf("%s: got %q, want %q", c.name, got[i], c.want[i])
			}
		}
	}
	for _, other := range []string{
		fmt.Sprintf("MainPID=%d\nInactiveExitTimestampMonotonic=%s\nFragmentPath=%s\n", mine+1, started, changed),
		fmt.Sprintf("MainPID=%d\nInactiveExitTimestampMonotonic=0\nFragmentPath=%s\n", mine, changed),
		"",
	} {
		if got := unitChanges(unit, mine, other); got != nil {
			t.Errorf("got %q for another unit, or one that has not started:\n%s", got, other)
		}
	}
	for groups, want := range map[string]string{
		"0::/system.slice/headgate.service\n":                                  "headgate.service",
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service": "x.service",
		"0::/user.slice/user-1000.slice/session-1.scope\n":                     "",
		"1:name=systemd:/system.slice/hg.service/sub\n0::/\n":                  "hg.service",
	} {
		if got := unitOf(groups); got != want {
			t.Errorf("the unit in %q: got %q, want %q", groups, got, want)
		}
	}
}
