// Command container is what runs in the containers of docker_test.go: an HTTP server
// that says its name. When it is told to end it goes on for a while, as programs do that
// want to lose no request, and lets those end that are running.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// lingers is how long requests are taken after the program was told to end.
const lingers = 2 * time.Second

// main serves at its first argument, with its second as the answer.
func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: container ADDRESS NAME")
		os.Exit(2)
	}
	name := os.Args[2]
	s := &http.Server{Addr: os.Args[1], Handler: http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		w.Header().Set("X-Path", rq.URL.Path)
		w.Header().Set("X-Got", strings.Join(rq.Header.Values("X-Said"), ","))
		fmt.Fprint(w, name)
	})}
	ended := make(chan struct{})
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	go func() {
		defer close(ended)
		<-told
		time.Sleep(lingers)
		s.Shutdown(context.Background())
	}()
	if err := s.ListenAndServe(); err != http.ErrServerClosed {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	<-ended
}
