package admin

import (
	"encoding/json"
	"net/http"
)

// InstancePath is the page that identifies this headgate.
const InstancePath = "/instance"

// Instance identifies a headgate to programs on this machine, so that a command never
// reaches a different one.
type Instance struct {
	// ID is generated at every start.
	ID string `json:"id"`
	// Config is the path of the configuration.
	Config string `json:"config"`
	// State is the path of the state directory.
	State string `json:"state"`
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
