package admin

import (
	"encoding/json"
	"net/http"
)

// InstancePath is the page that tells which headgate this is.
const InstancePath = "/instance"

// Instance tells programs on this machine which headgate they speak to, so that no
// command for one is ever taken by another.
type Instance struct {
	// ID is made anew at every start.
	ID string `json:"id"`
	// Config is the path of the configuration, State that of the state directory.
	Config string `json:"config"`
	State  string `json:"state"`
	// Socket is the path of the admin socket, "" if there is none.
	Socket string `json:"socket,omitempty"`
	// PID is the process.
	PID int `json:"pid"`
	// Version is that of the program.
	Version string `json:"version"`
}

// show answers with the instance.
func (i *Instance) show(w http.ResponseWriter, _ *http.Request) {
	body, _ := json.MarshalIndent(i, "", "  ") // texts and a number
	w.Header().Set("Content-Type", "application/json")
	w.Write(append(body, '\n'))
}

// forwardedFields are those of requests that came through a proxy.
var forwardedFields = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Via"}

// direct refuses requests that came through a proxy, such as this headgate: then the
// peer's loopback address says nothing of who asks.
func direct(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		for _, name := range forwardedFields {
			if rq.Header.Get(name) != "" {
				text(w, http.StatusForbidden, "this page is not given through a proxy\n")
				return
			}
		}
		next.ServeHTTP(w, rq)
	})
}
