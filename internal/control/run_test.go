package control

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

func TestABrokenFirstConfigurationIsTheErrorOfRun(t *testing.T) {
	h := prepare(t, "version: 1\nports: {a: {address: nonsense, protocol: http}}\n")
	err := h.c.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), h.file+":2:") {
		t.Errorf("got %v, want the place of the mistake", err)
	}
	if h.c.NotReady() == "" {
		t.Error("it is ready")
	}
	if !strings.Contains(h.log.String(), "configuration refused, nothing of it is served") {
		t.Errorf("the log says %s", h.log)
	}
}

func TestRunDrainsAtItsEnd(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	server := startSlow(t)
	h := start(t, through(server.url, "a "+at[0]))
	running, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	fmt.Fprint(running, "GET / HTTP/1.1\r\nHost: test\r\n\r\n")
	<-server.arrived
	idle, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	began := time.Now()
	h.stop()
	testhouse.Eventually(t, "it is not ready while it drains", func() bool { return h.c.NotReady() != "" })
	testhouse.Eventually(t, "the port drains", h.is("a", at[0], "draining"))
	if s := h.c.Status().State; s != "stopping" {
		t.Errorf("the state is %s", s)
	}
	if _, err := idle.r.ReadByte(); err == nil {
		t.Error("the idle connection got something")
	}
	idle.Close()
	close(server.release)
	if got, err := running.answer(); got != 200 || err != nil {
		t.Errorf("the running request got %d and %v", got, err)
	}
	running.Close()
	h.finish()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestWhatHangsIsCutAtTheEndOfTheDrainTime(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	server := startSlow(t)
	h := start(t, through(server.url, "a "+at[0]+" drain_timeout: 100ms"))
	hanging, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer hanging.Close()
	fmt.Fprint(hanging, "GET / HTTP/1.1\r\nHost: test\r\n\r\n")
	<-server.arrived
	began := time.Now()
	h.finish()
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %v with a drain time of 100ms", took)
	}
	if got, err := hanging.answer(); err == nil {
		t.Errorf("the hanging request got %d", got)
	}
	if n := h.log.count("drain timeout exceeded"); n != 1 {
		t.Errorf("it was said %d times, want once", n)
	}
}

func TestAHangingUploadIsCutToo(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	server := startSlow(t)
	h := start(t, through(server.url, "a "+at[0]+" drain_timeout: 100ms"))
	hanging, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer hanging.Close()
	fmt.Fprint(hanging, "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nhalf")
	<-server.arrived
	began := time.Now()
	h.finish()
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %v with a drain time of 100ms", took)
	}
}

func TestTheLinesOfAChange(t *testing.T) {
	at := testhouse.Addresses(t, 3)
	h := start(t, document(201, "a "+at[0], "b "+at[1]))
	began := len(h.log.String())
	h.apply(document(202, "a "+at[2], "c "+at[1]))
	log := h.log.String()[began:]
	moved := []string{at[0][strings.LastIndex(at[0], ":"):], at[2][strings.LastIndex(at[2], ":"):]}
	for _, line := range []string{
		`msg="configuration applied" revision=00000002 took=`,
		`msg="port a moves from ` + moved[0] + ` to ` + moved[1] + `" kind=ports name=a origin=`,
		`msg="port b is removed: it speaks http at ` + at[1] + `" kind=ports name=b origin=`,
		`msg="port c is added: it speaks http at ` + at[1] + `" kind=ports name=c origin=`,
		`msg="proxy all: route / sets fixed response status to 202 (was 201)" kind=proxies name=all origin=`,
		`msg="port closes" port=a address=` + at[0],
	} {
		if n := strings.Count(log, line); n != 1 {
			t.Errorf("%q stands there %d times, want once:\n%s", line, n, log)
		}
	}
	if n := strings.Count(log, "\n"); n != 7 {
		t.Errorf("%d lines, want 7:\n%s", n, log)
	}
}
