package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"headgate/internal/event"
)

// At a heartbeat, the access of a stream's client is checked again, too.
const (
	heartbeat    = 15 * time.Second
	writeTimeout = 30 * time.Second
)

// eventBody is one event.
type eventBody struct {
	// ID grows; it is what Last-Event-ID names.
	ID int64 `json:"id"`
	// Type is the name of its kind: see the reference page of events.
	Type string `json:"type"`
	// Time is when it happened.
	Time time.Time `json:"time"`
	// Level is info, warning or error.
	Level string `json:"level"`
	// Object is the object that the event concerns.
	Object string `json:"object"`
	// Text describes the event in a sentence.
	Text string `json:"text"`
	// Data has the fields of its kind.
	Data json.RawMessage `json:"data"`
	// Node is the machine that it happened on, where several share the store.
	Node string `json:"node,omitempty"`
}

func showEvent(e *event.Event) eventBody {
	return eventBody{int64(e.ID), e.Type, e.Time, string(e.Level), e.Object, e.Text, e.Data, e.Node}
}

var typesParameter = parameter{name: "types", about: "Event types, separated by commas; `config.*` matches all types of an object."}

var eventQuery = []parameter{typesParameter,
	{name: "after", about: "Continues after the event with this ID, like Last-Event-ID; 0 starts with the oldest event that is kept.", kind: "integer"}}

var historyQuery = []parameter{typesParameter,
	{name: "limit", about: "The maximum number of entries, up to 1000.", kind: "integer"},
	{name: "cursor", about: "The position to continue at: `next` of the previous page.", kind: "integer"}}

// filter returns the events that a query wants.
func (c *call) filter() (event.Filter, error) {
	var f event.Filter
	if text := c.text("types"); text != "" {
		for pattern := range strings.SplitSeq(text, ",") {
			if err := event.CheckPattern(pattern); err != nil {
				return f, refuseParameter("invalid", "types", err.Error(), "the reference page of events lists them")
			}
			f.Types = append(f.Types, pattern)
		}
	}
	return f, nil
}

func (a *API) history(c *call) (any, error) {
	f, err := c.filter()
	if err != nil {
		return nil, err
	}
	n := max(c.number("limit", defaultPage, maxPage), 1)
	all, err := a.Events.Page(c.rq.Context(), f, event.ID(c.number("cursor", 0, math.MaxInt)), n)
	if err != nil {
		return nil, err
	}
	items := make([]eventBody, 0, len(all))
	for _, e := range all {
		items = append(items, showEvent(e))
	}
	p := page{Items: items}
	if len(all) == n {
		p.Next = strconv.FormatInt(int64(all[n-1].ID), 10)
	}
	return p, nil
}

func (a *API) events(c *call) error {
	f, err := c.filter()
	if err != nil {
		return err
	}
	after := event.ID(-1)
	text := c.rq.Header.Get("Last-Event-ID")
	if text == "" {
		text = c.text("after")
	}
	if text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return refuseParameter("invalid", "Last-Event-ID", "must be an integer", "send the id of the last event that you have seen")
		}
		after = event.ID(n)
	}
	sub := a.Events.Subscribe(f, after)
	s, err := c.openStream()
	if err != nil {
		return err
	}
	next := time.Now().Add(c.api.heartbeat)
	for {
		wait, cancel := context.WithDeadline(c.rq.Context(), next)
		e, err := sub.Next(wait)
		cancel()
		// Check the client's access also if events leave no pause.
		if pause := errors.Is(err, context.DeadlineExceeded); pause || err == nil && !time.Now().Before(next) {
			err = s.beat()
			next = time.Now().Add(c.api.heartbeat)
		}
		if err == nil && e != nil {
			err = s.send(strconv.FormatInt(int64(e.ID), 10), e.Type, showEvent(e))
		}
		if err != nil {
			return nil // the client has gone or lost its access, or headgate is stopping
		}
	}
}

// stream is a response of server-sent events.
type stream struct {
	c  *call
	to *http.ResponseController
}

// openStream sends the head of a stream.
func (c *call) openStream() (*stream, error) {
	s := &stream{c, http.NewResponseController(c.w)}
	if err := s.to.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return nil, err
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	if c.rq.Method == http.MethodHead {
		return nil, errHeadOnly
	}
	return s, s.write("retry: 3000\n\n")
}

// errHeadOnly ends the stream of a HEAD request, which has no content (RFC 9110, section
// 9.3.2).
var errHeadOnly = errors.New("the request is HEAD")

// write sends text. A client that does not read it in time is disconnected.
func (s *stream) write(text string) error {
	if err := s.to.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.c.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.to.Flush()
}

// send sends one event. The id may be "".
func (s *stream) send(id, kind string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	head := ""
	if id != "" {
		head = "id: " + id + "\n"
	}
	return s.write(fmt.Sprintf("%sevent: %s\ndata: %s\n\n", head, kind, data))
}

// beat keeps the connection, and looks whether the client may still listen.
func (s *stream) beat() error {
	who, err := s.c.api.identify(s.c.rq)
	if err != nil {
		return err
	}
	s.c.who = who
	if err := s.c.allowed(); err != nil {
		return err
	}
	return s.write(": \n\n")
}
