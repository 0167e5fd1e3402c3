package health

import (
	"fmt"
	"io"
	"time"

	"headgate/internal/clock"
	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// maxBody limits how much of a response's body is checked, in bytes.
const maxBody = 64 << 10

// agent is the User-Agent of a check.
const agent = "headgate-health-check"

// runOnce makes one check, in no more than its time.
func (k *Check) runOnce() Result {
	began := clock.Now()
	until := began + int64(k.config.Timeout)
	status, wrong := k.try(until)
	end := clock.Now()
	if wrong == "" && end > until {
		wrong = "the answer came too late"
	}
	return Result{At: time.Now(), Took: float64(end-began) / 1e6, Healthy: wrong == "", Status: status, Error: wrong}
}

// try sends a check to the server. A panic makes the check fail instead of ending the
// process.
func (k *Check) try(until int64) (status int, wrong string) {
	defer func() {
		if v := recover(); v != nil {
			exchange.Broken(k.log, v, "health check", "server", k.probe.Name)
			wrong = fmt.Sprintf("broken invariant: %v", v)
		}
	}()
	if k.path != "" {
		return k.request(until)
	}
	if err := k.probe.Connect(k.config.Timeout.D()); err != nil {
		wrong = err.Error()
	}
	return 0, wrong
}

// request sends a request for the path and returns what is wrong with the
// response.
func (k *Check) request(until int64) (status int, wrong string) {
	e := &k.subrequest
	e.Start(k.method, k.path, k.query, k.config.Timeout.D())
	e.WhileWanted(func() bool { return k.retired.Load() || clock.Now() > until })
	e.Request.Header.Add(header.UserAgent, agent)
	if k.call != nil {
		k.fillGRPC()
	} else {
		e.Request.Header.Add(header.Accept, "*/*")
	}
	defer e.Close()
	if answer := e.Send(k.probe.Source); answer != nil {
		if answer.Reason == exchange.ClientClosed {
			return 0, fmt.Sprintf("no answer in %v", k.config.Timeout)
		}
		return 0, answer.Cause
	}
	status = e.Response.Status
	if k.call == nil && !k.statuses.has(status) {
		return status, fmt.Sprintf("status %d, want %s", status, k.config.Status)
	}
	// It is read even if it is not checked: closing a connection with unread bytes resets
	// it, which servers log as an error.
	whole, err := k.readBody(until)
	switch {
	case k.call != nil && err == nil:
		return status, k.judgeGRPC(&e.Response)
	case k.call == nil && (k.body == nil || k.body.Match(k.buffer)):
		return status, ""
	case err != nil:
		return status, fmt.Sprintf("the body broke off: %v", err)
	case !whole:
		return status, fmt.Sprintf("the first %d bytes of the body do not match %s", len(k.buffer), k.config.Body)
	}
	return status, "the body does not match " + k.config.Body
}

// readBody reads the beginning of the body into the buffer, and reports whether
// that was all of it.
func (k *Check) readBody(until int64) (whole bool, err error) {
	k.buffer = k.buffer[:0]
	body := k.subrequest.Response.Body
	if body == nil {
		k.buffer = append(k.buffer, k.subrequest.Response.Text...)
		return true, nil
	}
	for len(k.buffer) < maxBody {
		if cap(k.buffer)-len(k.buffer) < 512 {
			k.buffer = append(k.buffer, make([]byte, max(512, cap(k.buffer)))...)[:len(k.buffer)]
		}
		n, err := body.Read(k.buffer[len(k.buffer):min(cap(k.buffer), maxBody)])
		k.buffer = k.buffer[:len(k.buffer)+n]
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if clock.Now() > until {
			return false, fmt.Errorf("not complete within %v", k.config.Timeout)
		}
	}
	return false, nil
}
