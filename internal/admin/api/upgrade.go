package api

import (
	"errors"
	"net/http"
	"time"

	"headgate/internal/upgrade"
)

// upgradeRows are the rows of the upgrade of the binary.
func (a *API) upgradeRows() []row {
	return []row{
		{method: http.MethodGet, path: "/upgrade", access: viewer, area: areaStatus, out: of[upgrade.State](), handle: a.upgradeState,
			about: "Returns the version and generation of the process, whether an upgrade is in progress, and how many connections the replaced process still has."},
		{method: http.MethodPost, path: "/upgrade", access: admin, area: areaStatus, in: of[upgradeInput](), out: of[upgrade.Result](), noDry: "It starts another process.", may: []int{409, 503}, handle: withBody(a.upgradeNow),
			about: "Replaces the process with one that runs the binary now on disk. No connection is closed. The response is sent when the new process serves, or when it has failed to; in that case nothing has changed."},
		{method: http.MethodPost, path: "/upgrade/check", access: admin, area: areaStatus, in: of[empty](), out: of[upgrade.Check](), noDry: "It changes nothing.", may: []int{409}, handle: withBody(a.checkUpgrade),
			about: "Checks whether the binary now on disk can replace the process: runs it with the current configuration and compares versions. Nothing is changed."},
	}
}

// checkUpgrade checks whether the process can be replaced.
func (a *API) checkUpgrade(c *call, _ *empty) (any, error) {
	if a.CheckUpgrade == nil {
		return nil, refuse("upgrade_refused", "", "this process cannot be replaced", "restart headgate")
	}
	return a.CheckUpgrade(c.rq.Context()), nil
}

// upgradeInput has the options of an upgrade.
type upgradeInput struct {
	// Force closes the remaining connections of a process that an earlier upgrade replaced.
	// Without it such a process rejects the upgrade.
	Force bool `json:"force,omitempty"`
	// Why is recorded in the audit log.
	Why string `json:"why,omitempty" max:"1024"`
}

func (a *API) upgradeState(*call) (any, error) {
	if a.Control == nil {
		return upgrade.State{Version: a.Version.Version, Generation: 1}, nil
	}
	return a.Control.Process(), nil
}

// upgradeNow replaces the process. The audit record comes first: this process writes
// nothing afterwards.
func (a *API) upgradeNow(c *call, in *upgradeInput) (any, error) {
	if a.Upgrade == nil {
		return nil, refuse("upgrade_refused", "", "this process cannot be replaced", "restart headgate")
	}
	c.note("process.upgrade", "", in.Why)
	result, err := a.Upgrade(in.Force)
	var refused *upgrade.Refusal
	switch {
	case errors.As(err, &refused):
		return nil, refuse("upgrade_refused", "", refused.Detail, refused.Remedy)
	case err != nil:
		return nil, refuse("upgrade_failed", "", err.Error(), "the running process continues as before; fix the cause and try again, or restart headgate")
	}
	return result, nil
}

// frozenRetry is after how long a change can be tried again that came during an upgrade.
const frozenRetry = 2 * time.Second

// frozen returns why a request cannot be served while another process takes over; nil if
// it can.
func (a *API) frozen(rq *http.Request) error {
	if a.Control == nil || !a.Control.Frozen() || rq.Method == http.MethodGet || rq.Method == http.MethodHead {
		return nil
	}
	return upgrading()
}

// upgrading returns the response to a change that comes during an upgrade.
func upgrading() error {
	p := refuse("upgrading", "", "headgate is being upgraded; changes are possible again in a moment", "try again")
	p.retryAfter = frozenRetry
	return p
}
