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
