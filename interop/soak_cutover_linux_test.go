package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// cutovers takes the address of another proxy with headgate and gives it back, again and
// again. Clients of either address get their answers all the time. Other changes confirm a
// cutover, revert it, or restore what was before it: wherever the port is then, it goes back.
func (s *soak) cutovers() {
	client := &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: either(s.beside, s.taken), DisableKeepAlives: true}}
	s.each(2, func(r *rand.Rand) { s.ask(r, client, "beside", "http://"+s.beside) })
	old := s.oldProxy()
	if old == nil {
		s.t.Fatal("the address of the old proxy is not free")
	}
	s.each(1, func(r *rand.Rand) {
		s.pause(r, 10*time.Second)
		if old != nil {
			old = s.takeOver(r, old)
		}
		if old == nil {
			old = s.giveBack(r)
		}
	})
}

// takeOver cuts over while the old proxy lets go of its address. It returns the old proxy, if
// that still has it.
func (s *soak) takeOver(r *rand.Rand, old *http.Server) *http.Server {
	_, port, _ := net.SplitHostPort(s.taken)
	done := make(chan error, 1)
	go func() {
		done <- s.runs("cutover", "--http", "beside="+port, "--no-dns", "--yes", "--wait=20s", "--confirm", "10s")
	}()
	select {
	case err := <-done:
		if err == nil {
			s.never("a cutover to an address that another process has succeeded")
		}
		return old // refused: another change is not confirmed yet, or the disk is full
	case <-time.After(2 * time.Second):
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := old.Shutdown(ctx); err != nil {
		s.t.Errorf("the old proxy: %v", err)
	}
	if err := <-done; err != nil {
		s.saw("cutover failed")
		return nil
	}
	s.saw("cutover")
	s.pause(r, 3*time.Second)
	if r.IntN(4) > 0 { // or it goes back by itself
		if s.runs("confirm") == nil {
			s.saw("cutover confirmed")
		}
		s.pause(r, 3*time.Second)
	}
	return nil
}

// giveBack moves the port back, and starts the old proxy again once its address is free.
func (s *soak) giveBack(r *rand.Rand) *http.Server {
	if s.runs("cutover", "--back", "--yes", "--confirm", "10s") == nil {
		s.saw("cutover back")
		s.runs("confirm")
	}
	for end := time.Now().Add(12 * time.Second); time.Now().Before(end) && s.ctx.Err() == nil; s.pause(r, time.Second) {
		if old := s.oldProxy(); old != nil {
			return old
		}
	}
	s.saw("cutover not taken back yet")
	return nil
}

// oldProxy starts the other proxy, unless headgate has its address.
func (s *soak) oldProxy() *http.Server {
	l, err := net.Listen("tcp", s.taken)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil
	}
	if err != nil {
		s.t.Error(err)
		return nil
	}
	server := &http.Server{Handler: s.behaves}
	go server.Serve(l)
	s.t.Cleanup(func() { server.Close() })
	return server
}

// runs runs a command of headgate with the one that is tried.
func (s *soak) runs(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, os.Getenv(binaryFolder), append(args, "--state", s.g.dir+"/state")...).CombinedOutput()
	if err != nil {
		s.saw(fmt.Sprintf("headgate %s: %.90s", args[0], lastLine(string(out))))
	}
	if text := string(out); err != nil && (ctx.Err() != nil || strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic:")) {
		s.never("headgate %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return err
}

// lastLine returns the last line of a text, without what differs from time to time.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	text = text[strings.LastIndexByte(text, '\n')+1:]
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, text)
}
