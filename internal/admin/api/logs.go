package api

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate/internal/accesslog/recent"
	"headgate/internal/operator"
)

// requestBody is one recent request, connection or session.
type requestBody = recent.Request

// logQuery are the parameters of recent requests.
func logQuery(paged bool) []parameter {
	all := []parameter{
		{name: "host", about: "The host; `*.example.com` matches all its subdomains."},
		{name: "proxy", about: "The name of the proxy."},
		{name: "server", about: "The server that sent the response or was tried last."},
		{name: "status", about: "A status, a class such as `5xx`, or a range such as `400-499`."},
		{name: "reason", about: "The reason; `any` matches every request that has one."},
		{name: "client", about: "The client's address, or a network."},
		{name: "country", about: "The country of the client, such as `DE`, or `unknown`."},
		{name: "asn", about: "The number of the client's network, such as `64500` or `AS64500`."},
		{name: "method", about: "The method."},
		{name: "path", about: "The prefix of the path."},
		{name: "slower_than", about: "The minimum duration, such as `250ms`."},
		{name: "request_id", about: "The request ID."},
		{name: "text", about: "Text in host, path, query, server, user, agent, referer or cause."},
	}
	if paged {
		all = append(all,
			parameter{name: "since", about: "Requests that ended at this time or later, such as 2026-01-31T12:00:00Z."},
			parameter{name: "until", about: "Requests that ended at this time or earlier."},
			parameter{name: "limit", about: "The maximum number of entries, up to 1000.", kind: "integer"},
			parameter{name: "cursor", about: "The position to continue at: `next` of the previous page."})
	}
	return all
}

// requestQuery reads which requests are wanted.
func (c *call) requestQuery() (recent.Query, error) {
	q := recent.Query{
		Host: c.text("host"), Proxy: c.text("proxy"), Server: c.text("server"), Reason: c.text("reason"), Method: c.text("method"),
		Path: c.text("path"), ID: c.text("request_id"), Text: c.text("text"), Country: c.text("country"),
	}
	var err error
	if q.StatusFrom, q.StatusTo, err = statusRange(c.text("status")); err != nil {
		return q, err
	}
	if text := c.text("client"); text != "" {
		if q.Client, err = network(text); err != nil {
			return q, refuseParameter("invalid", "client", "the address cannot be read", "write an address, or a network as 192.0.2.0/24")
		}
	}
	if text := c.text("asn"); text != "" {
		if q.ASN, err = networkNumber(text); err != nil {
			return q, refuseParameter("invalid", "asn", "the number of the network cannot be read", "write it as 64500 or AS64500")
		}
	}
	if text := c.text("slower_than"); text != "" {
		if q.SlowerThan, err = time.ParseDuration(text); err != nil || q.SlowerThan < 0 {
			return q, refuseParameter("invalid", "slower_than", "the duration cannot be read", "write it as 250ms or 2s")
		}
	}
	for name, into := range map[string]*time.Time{"since": &q.Since, "until": &q.Until} {
		if text := c.text(name); text != "" {
			if *into, err = time.Parse(time.RFC3339, text); err != nil {
				return q, refuseParameter("invalid", name, "the time cannot be read", "write it as 2026-01-31T12:00:00Z")
			}
		}
	}
	return q, nil
}

// statusRange reads "", "404", "5xx" or "400-499".
func statusRange(text string) (from, to int, err error) {
	bad := refuseParameter("invalid", "status", "the status cannot be read", "write 404, 5xx or 400-499")
	low, high, ranged := strings.Cut(text, "-")
	switch {
	case text == "":
		return 0, 0, nil
	case len(text) == 3 && text[0] >= '1' && text[0] <= '5' && strings.EqualFold(text[1:], "xx"):
		from = int(text[0]-'0') * 100
		return from, from + 99, nil
	case !ranged:
		high = low
	}
	from, one := strconv.Atoi(low)
	to, two := strconv.Atoi(high)
	if one != nil || two != nil || from < 100 || to > 599 || from > to {
		return 0, 0, bad
	}
	return from, to, nil
}

// networkNumber reads "64500" or "AS64500".
func networkNumber(text string) (uint32, error) {
	if len(text) > 2 && strings.EqualFold(text[:2], "AS") {
		text = text[2:]
	}
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}

func network(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		p, err := netip.ParsePrefix(text)
		return p.Masked(), err
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	return a.Unmap().Prefix(a.Unmap().BitLen())
}

func (a *API) ring() (*recent.Ring, error) {
	if a.Recent != nil {
		if ring := a.Recent(); ring != nil {
			return ring, nil
		}
	}
	return nil, refuse(operator.CodeNotFound, "", "recent requests are not kept", "set access_log.recent.enabled to true")
}

func (a *API) logs(c *call) (any, error) {
	ring, err := a.ring()
	if err != nil {
		return nil, err
	}
	q, err := c.requestQuery()
	if err != nil {
		return nil, err
	}
	var after recent.Cursor
	if text := c.text("cursor"); text != "" {
		end, number, _ := strings.Cut(text, "-")
		var one, two error
		after.End, one = strconv.ParseInt(end, 36, 64)
		after.Number, two = strconv.ParseUint(number, 36, 64)
		if one != nil || two != nil {
			return nil, badCursor()
		}
	}
	found := ring.Find(q, after, max(c.number("limit", defaultPage, maxPage), 1))
	p := page{Items: found.Requests}
	if found.Next != (recent.Cursor{}) {
		p.Next = strconv.FormatInt(found.Next.End, 36) + "-" + strconv.FormatUint(found.Next.Number, 36)
	}
	return p, nil
}

func (a *API) followLogs(c *call) error {
	if node := c.otherNode(); node != "" {
		return a.followNode(c, node)
	}
	ring, err := a.ring()
	if err != nil {
		return err
	}
	q, err := c.requestQuery()
	if err != nil {
		return err
	}
	following, err := ring.Subscribe(q) // before the head: the client sees what ends from then on
	if err != nil {
		return refuse(operator.CodeOverloaded, "", "too many are following already", "close some")
	}
	s, err := c.openStream()
	if err != nil {
		following.Close()
		return err
	}
	ctx, cancel := context.WithCancel(c.rq.Context())
	defer cancel()
	beat := time.NewTicker(c.api.heartbeat)
	defer beat.Stop()
	lines := make(chan recent.Live)
	over := make(chan struct{})
	go func() {
		defer close(over)
		following.Run(ctx, func(l recent.Live) bool {
			select {
			case lines <- l:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	defer func() { cancel(); <-over }()
	for {
		var err error
		select {
		case l := <-lines:
			if l.Missed > 0 {
				err = s.send("", "gap", map[string]uint64{"missed": l.Missed})
			} else {
				err = s.send("", "request", l.Request)
			}
		case <-beat.C:
			err = s.beat()
		case <-over:
			return nil // the ring is no longer in use, and the client comes again
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return nil
		}
	}
}

// logTail returns the requests that ended since a position, and the next position. Position 0 is now.
func (a *API) logTail(c *call, from int64) (*tailBody, int64, error) {
	ring, err := a.ring()
	if err != nil {
		return nil, 0, err
	}
	q, err := c.requestQuery()
	if err != nil {
		return nil, 0, err
	}
	if from == 0 {
		return &tailBody{Items: []requestBody{}}, recent.Until(), nil
	}
	p, until := ring.Tail(q, from, maxTail)
	b := &tailBody{Items: p.Requests}
	if p.Next != (recent.Cursor{}) {
		b.Missed = 1 // at least
	}
	return b, until, nil
}

// followNode streams the requests of another machine, whose log is read every tailEvery. It
// ends if the machine does not respond: the client then reconnects and gets the reason.
func (a *API) followNode(c *call, node string) error {
	reply, err := a.queryNode(c, node, 0) // before the response header is sent, so that an error has its own status
	if err != nil {
		return err
	}
	s, err := c.openStream()
	if err != nil {
		return err
	}
	read, beat := time.NewTicker(tailEvery), time.NewTicker(a.heartbeat)
	defer read.Stop()
	defer beat.Stop()
	for {
		var err error
		select {
		case <-read.C:
			if reply, err = a.queryNode(c, node, reply.Until); err == nil {
				err = s.sendTail(reply.body)
			}
		case <-beat.C:
			err = s.beat()
		case <-c.rq.Context().Done():
			err = c.rq.Context().Err()
		}
		if err != nil {
			return nil
		}
	}
}

// sendTail sends the requests of a tailBody, the oldest first.
func (s *stream) sendTail(body []byte) error {
	var tail struct {
		Items  []json.RawMessage `json:"items"`
		Missed uint64            `json:"missed"`
	}
	if err := json.Unmarshal(body, &tail); err != nil {
		return err
	}
	if tail.Missed > 0 {
		if err := s.send("", "gap", map[string]uint64{"missed": tail.Missed}); err != nil {
			return err
		}
	}
	for _, item := range slices.Backward(tail.Items) {
		if err := s.send("", "request", item); err != nil {
			return err
		}
	}
	return nil
}
