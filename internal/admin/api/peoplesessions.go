package api

import (
	"fmt"
	"strings"
	"time"

	"headgate/internal/gate"
)

// personSession is a session of a person at applications.
type personSession struct {
	// ID identifies the session. It opens nothing.
	ID string `json:"id"`
	// Person is the id of the person: PROVIDER/ID, local/NAME for people kept by headgate.
	Person string `json:"person"`
	// Title is the person's name or address.
	Title string `json:"title"`
	// Provider is the name of the sign-in provider, local for people kept by headgate.
	Provider string `json:"provider"`
	// Address is the address of the browser at sign-in.
	Address string `json:"address,omitempty"`
	// Agent is the User-Agent of the browser at sign-in.
	Agent string `json:"user_agent,omitempty"`
	// Created is when the session was created.
	Created time.Time `json:"created"`
	// Seen is when it was last used.
	Seen time.Time `json:"seen"`
	// Expires is when it ends at the latest.
	Expires time.Time `json:"expires"`
	// Confirmed is when the provider last confirmed the session.
	Confirmed time.Time `json:"confirmed"`
	// Rechecked is whether the session is checked again: the provider has issued a refresh
	// token.
	Rechecked bool `json:"rechecked"`
	// Hosts are the hosts of applications that it has been used at.
	Hosts []string `json:"hosts"`
}

func showPersonSession(s *gate.Session) personSession {
	p := s.Person()
	hosts := s.Hosts()
	if hosts == nil {
		hosts = []string{}
	}
	confirmed, again := s.Confirmed()
	return personSession{
		Confirmed: confirmed.UTC().Truncate(time.Second), Rechecked: again,
		ID: s.ID(), Person: p.ID, Title: p.Title(), Provider: p.Provider, Address: s.Address(), Agent: s.Agent(),
		Created: s.Created(), Seen: s.Seen().UTC().Truncate(time.Second), Expires: s.Expires(), Hosts: hosts,
	}
}

func (a *API) personSessions(c *call) (any, error) {
	engine, err := a.gate()
	if err != nil {
		return nil, err
	}
	var entries []listed
	for _, s := range engine.Sessions() {
		b := showPersonSession(s)
		entries = append(entries, listed{name: b.ID, text: b.Person + " " + b.Title + " " + b.Address + " " + strings.Join(b.Hosts, " "), value: b,
			keys: map[string]string{"created": b.Created.Format(time.RFC3339), "seen": b.Seen.Format(time.RFC3339), "person": b.Person}})
	}
	return c.list(entries)
}

// sessionsOf are the parameters of ending the sessions of a person.
var sessionsOf = []parameter{{name: "person", about: "PROVIDER/ID of the person, as the list of sessions has it. Required."}}

// endedBody is how many sessions were ended.
type endedBody struct {
	// Ended is the number of sessions.
	Ended int `json:"ended"`
}

// endPersonSessions ends the sessions of a person one by one: if the store fails, those before
// have ended.
func (a *API) endPersonSessions(c *call) (any, error) {
	engine, err := a.gate()
	if err != nil {
		return nil, err
	}
	person := c.text("person")
	if person == "" {
		return nil, refuseParameter("invalid", "person", "person: missing", "add person=PROVIDER/ID, as the list of sessions shows it")
	}
	var out endedBody
	for _, s := range engine.Sessions() {
		if s.Person().ID != person {
			continue
		}
		if !c.dryRun {
			if err := engine.SignOut(s, c.who.Name); err != nil {
				return nil, refuse("unavailable", "", fmt.Sprintf("%d sessions were ended, the next one cannot be: %v", out.Ended, err), "try again")
			}
		}
		out.Ended++
	}
	if out.Ended == 0 {
		return nil, refuse("not_found", "", "the person has no session", "check the name: the list of sessions has it as PROVIDER/ID")
	}
	if !c.dryRun {
		c.note("person.session_end", "person "+person, fmt.Sprintf("%d sessions", out.Ended))
	}
	return out, nil
}

func (a *API) endPersonSession(c *call) (any, error) {
	engine, err := a.gate()
	if err != nil {
		return nil, err
	}
	s := engine.Session(c.name())
	if s == nil {
		return nil, refuse("not_found", "", "there is no such session", "\"headgate person sessions\" lists them")
	}
	if c.dryRun {
		return nil, nil
	}
	if err := engine.SignOut(s, c.who.Name); err != nil {
		return nil, refuse("unavailable", "", "the session cannot be ended: "+err.Error(), "try again")
	}
	c.note("person.session_end", "person "+s.Person().ID, "")
	return nil, nil
}
