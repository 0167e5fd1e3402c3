package demo

import (
	"io"
	"net/http"
)

// Answer is what a server for tests answers to every request.
type Answer struct {
	// Name identifies the server in the echo, such as its address.
	Name string

	// Status is the status of the response, 200 to 599.
	Status int

	// Header is added to the response.
	Header http.Header

	// Body is the body of the response. If it is empty, the response is the echo that
	// Upstream sends.
	Body string
}

// Respond returns a handler that gives one answer to every request. Request
// bodies are read to their end, at most 64 MiB of them.
func Respond(a Answer) http.Handler {
	echo := Upstream(a.Name)
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		for name, values := range a.Header {
			w.Header()[name] = values
		}
		if a.Body == "" {
			echo.ServeHTTP(&withStatus{w, a.Status}, rq)
			return
		}
		if _, err := io.Copy(io.Discard, http.MaxBytesReader(w, rq.Body, maxBody)); err != nil {
			http.Error(w, a.Name+" could not read the body: "+err.Error(), http.StatusBadRequest)
			return
		}
		if w.Header().Get("Content-Type") == "" {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
		w.WriteHeader(a.Status)
		_, _ = io.WriteString(w, a.Body) // the proxy went away
	})
}

// withStatus answers with a status in place of 200.
type withStatus struct {
	http.ResponseWriter
	status int
}

func (w *withStatus) WriteHeader(status int) {
	if w.status != 0 {
		if status == http.StatusOK {
			status = w.status
		}
		w.status = 0
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *withStatus) Write(p []byte) (int, error) {
	if w.status != 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(p)
}
