package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"headgate/internal/testhouse"
)

var updateScripts = flag.Bool("update", false, "write the wanted output of scripts anew")

// TestMain lets scripts run this binary as headgate.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"headgate": main})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *updateScripts,
		Condition:     condition,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=10") // a second for each command otherwise
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/xdg")
			env.Setenv("XDG_STATE_HOME", env.WorkDir+"/state")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"freeport":   freeport,
			"http":       request,
			"waitfile":   waitFile,
			"signal":     sendSignal,
			"waitpage":   waitPage,
			"waitout":    waitOut,
			"expand":     expand,
			"setenvfile": setEnvFile,
			"code":       exitCode,
			"json":       isJSON,
		},
	})
}

// condition is [command:NAME], and [mounts] where file systems can be mounted.
func condition(condition string) (bool, error) {
	if condition == "mounts" {
		return exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "none", os.TempDir()).Run() == nil, nil
	}
	name, ok := strings.CutPrefix(condition, "command:")
	if !ok {
		return false, fmt.Errorf("unknown condition %q", condition)
	}
	for _, c := range newRoot().Commands() {
		if c.Name() == name {
			return true, nil
		}
	}
	return false, nil
}

// freeport NAME sets the variable NAME to an address on 127.0.0.1 that nobody
// listens on, and NAMEPORT to its number.
func freeport(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport NAME")
	}
	port, release, err := testhouse.Port()
	ts.Check(err)
	ts.Defer(release)
	ts.Setenv(args[0], fmt.Sprintf("127.0.0.1:%d", port))
	ts.Setenv(args[0]+"PORT", strconv.Itoa(port))
}

// expand FILE... replaces $NAME in files by the script's variables.
func expand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: expand FILE...")
	}
	for _, name := range args {
		text := os.Expand(ts.ReadFile(name), ts.Getenv)
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// setenvfile NAME FILE sets a variable to what a file holds.
func setEnvFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: setenvfile NAME FILE")
	}
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile(args[1])))
}

// code N COMMAND... runs a command, which has to end with that exit code.
func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(got) != args[0] {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}

// json holds that stdout is JSON: one value, or one a line.
func isJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: json")
	}
	d, n := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout"))), 0
	for {
		var v any
		err := d.Decode(&v)
		if err == io.EOF && n > 0 {
			return
		}
		if err != nil {
			ts.Fatalf("stdout is no JSON: %v", err)
		}
		n++
	}
}

// signal NAME sends a signal to the commands that run in the background.
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: signal NAME")
	}
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(kill(cmd.Process, args[0]))
	}
}

// patience is how long a script waits for something to happen.
const patience = time.Minute

// newHTTPClient returns a client that accepts every certificate.
func newHTTPClient() *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
}

// request METHOD URL STATUS [name:value...] sends a request until the answer
// has the status, and sets stdout to its body. The field body:FILE is no field: the
// request has the file as its body, in JSON. "! request METHOD URL" waits until nobody
// answers.
func request(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || !neg && len(args) < 3 {
		ts.Fatalf("usage: [!] http METHOD URL STATUS [name:value...]")
	}
	client := newHTTPClient()
	var last string
	waitFor(ts, func() bool {
		rq, err := http.NewRequest(args[0], args[1], nil)
		ts.Check(err)
		for _, h := range args[min(3, len(args)):] {
			name, value, _ := strings.Cut(h, ":")
			if name == "body" {
				text := ts.ReadFile(value)
				rq.Body, rq.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
				rq.Header.Set("Content-Type", "application/json")
				continue
			}
			if rq.Header.Set(name, value); strings.EqualFold(name, "host") {
				rq.Host = value
			}
		}
		rs, err := client.Do(rq)
		if err != nil {
			last = err.Error()
			return neg
		}
		defer rs.Body.Close()
		body, err := io.ReadAll(rs.Body)
		ts.Check(err)
		last = fmt.Sprintf("%d %s", rs.StatusCode, body)
		if !neg && fmt.Sprint(rs.StatusCode) == args[2] {
			_, _ = ts.Stdout().Write(body)
			return true
		}
		return false
	}, func() string { return "last answer: " + last })
}

// waitfile NAME TEXT [URL] waits until there is a file and holds a text. With a URL, that
// is asked for meanwhile.
func waitFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 && len(args) != 3 {
		ts.Fatalf("usage: waitfile NAME TEXT [URL]")
	}
	var last []byte
	waitFor(ts, func() bool {
		if len(args) == 3 {
			rs, err := newHTTPClient().Get(args[2])
			ts.Check(err)
			rs.Body.Close()
		}
		var err error
		last, err = os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && strings.Contains(string(last), args[1])
	}, func() string { return "the file holds: " + string(last) })
}

// waitpage URL TEXT waits until a page holds a text.
func waitPage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitpage URL TEXT")
	}
	client := newHTTPClient()
	var last []byte
	waitFor(ts, func() bool {
		rs, err := client.Get(args[0])
		ts.Check(err)
		defer rs.Body.Close()
		last, err = io.ReadAll(rs.Body)
		ts.Check(err)
		return strings.Contains(string(last), args[1])
	}, func() string { return "the page holds: " + string(last) })
}

// waitout TEXT COMMAND... runs a command until it succeeds and prints a text.
func waitOut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: waitout TEXT COMMAND...")
	}
	waitFor(ts, func() bool {
		return ts.Exec(args[1], args[2:]...) == nil && strings.Contains(ts.ReadFile("stdout"), args[0])
	}, func() string { return "it prints: " + ts.ReadFile("stdout") + ts.ReadFile("stderr") })
}

// waitFor polls until something holds.
func waitFor(ts *testscript.TestScript, holds func() bool, state func() string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			ts.Fatalf("waited %v in vain; %s", patience, state())
		}
	}
}
