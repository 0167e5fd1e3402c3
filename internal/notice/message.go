package notice

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"headgate/internal/event"
	"headgate/internal/setting/shown"
)

// The bounds of a message.
const (
	// maxLines is how many events of a digest are listed, maxMessage the length of the text
	// in bytes: Discord accepts 2000 characters, and others more.
	maxLines   = 25
	maxMessage = 1800
)

// Message is what is delivered: one event, or several of a digest.
type Message struct {
	// Events are the events, the oldest first; at least one.
	Events []*event.Event
	// Omitted is how many more there were.
	Omitted int
	// Instance is the name of the machine.
	Instance string
}

// id returns a name that is the same whenever the message is sent again.
func (m *Message) id() string { return messageID(m.Events[0]) }

// level returns the highest level of the events.
func (m *Message) level() event.Level {
	top := event.Info
	for _, e := range m.Events {
		if rank(e.Level) > rank(top) {
			top = e.Level
		}
	}
	return top
}

func (m *Message) count() int { return len(m.Events) + m.Omitted }

// node returns the machine of the first event, "" if no others share the log, and whether it is that of
// all events.
func (m *Message) node() (name string, one bool) {
	name = m.Events[0].Node
	for _, e := range m.Events {
		if e.Node != name {
			return name, false
		}
	}
	return name, true
}

// title returns one line that says what the message is about.
func (m *Message) title() string {
	from := "headgate"
	if on, one := m.node(); on != "" && one {
		from += " on " + on
	} else if m.Instance != "" && one {
		from += " on " + m.Instance
	}
	if m.count() == 1 {
		return shown.Line(from+": "+m.Events[0].Object+" ("+string(m.Events[0].Level)+")", 200)
	}
	errors := 0
	for _, e := range m.Events {
		if e.Level == event.Error {
			errors++
		}
	}
	title := fmt.Sprintf("%s: %d events", from, m.count())
	if errors == 1 {
		title += ", 1 error"
	} else if errors > 1 {
		title += fmt.Sprintf(", %d errors", errors)
	}
	return shown.Line(title, 200)
}

// text returns the sentences of the events.
func (m *Message) text() string {
	if m.count() == 1 {
		return shown.Text(m.Events[0].Text, ' ')
	}
	var b strings.Builder
	more := m.Omitted
	_, one := m.node()
	for i, e := range m.Events {
		line := e.Time.Local().Format("15:04:05") + " " + string(e.Level) + on(e, one) + ": " + shown.Line(e.Text, 240) + "\n"
		if i >= maxLines || b.Len()+len(line) > maxMessage {
			more += len(m.Events) - i
			break
		}
		b.WriteString(line)
	}
	if more > 0 {
		fmt.Fprintf(&b, "and %d more", more)
	}
	return strings.TrimRight(b.String(), "\n")
}

// on names the machine of an event, if not all have the same.
func on(e *event.Event, one bool) string {
	if one || e.Node == "" {
		return ""
	}
	return " on " + e.Node
}

// values returns the variables of a template.
func (m *Message) values() map[string]string {
	e := m.Events[0]
	return map[string]string{
		"title": m.title(), "text": m.text(), "level": string(m.level()), "type": e.Type, "object": e.Object,
		"time": e.Time.UTC().Format(time.RFC3339), "count": strconv.Itoa(m.count()),
	}
}
