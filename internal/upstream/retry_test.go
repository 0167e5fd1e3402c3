package upstream

import (
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/schema"
)

func TestConditionsAreTheWordsOfTheReference(t *testing.T) {
	for text, want := range map[string]string{
		"connect": "", "reset": "", "timeout": "", "502": "", "503": "", "504": "", "502-504": "", "503-503": "",
		"500": "not a status between", "504-502": "not a status between", "501-504": "not a status between",
		"429": "not a status between", "": "unknown condition", "5xx": "unknown condition", "0x1f6": "unknown condition",
		"502-": "unknown condition", "-504": "unknown condition", "Connect": "unknown condition",
	} {
		var c Condition
		got := ""
		if err := c.UnmarshalText([]byte(text)); err != nil {
			got = err.Error()
		}
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSettingsThatRetryNothingAreTold(t *testing.T) {
	for _, c := range []struct {
		set  Retry
		want string
	}{
		{Retry{Attempts: 2, On: []Condition{"connect", "502-504"}}, ""},
		{Retry{Attempts: 1}, ""},
		{Retry{Attempts: 1, On: []Condition{"503"}}, "retry.attempts: with 1 attempt"},
		{Retry{Attempts: 2, On: []Condition{"503", "reset", "503"}}, "retry.on[2]: duplicate entry 503"},
	} {
		r := schema.NewReport("", nil)
		c.set.Check(r.Root().Field("retry"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.set, got, c.want)
		}
	}
}

func TestWithoutAConditionNothingIsSentTwice(t *testing.T) {
	for _, c := range []*Retry{nil, {Attempts: 2}, {Attempts: 2, On: []Condition{OnConnect}}} {
		if r := newRetry(c, nil); r != nil {
			t.Errorf("%+v: %+v, want none", c, r)
		}
	}
}

func TestBudgetIsAShareOfTheTraffic(t *testing.T) {
	b := &budget{share: 20}
	now := 1000 * slotLength
	taken := func(at int64) (n int) {
		for b.spend(at) {
			n++
		}
		return n
	}
	equal(t, "retries without traffic", taken(now), freeRetries)
	for range 1000 {
		b.request(now + 3*slotLength)
	}
	equal(t, "retries of 1000 requests", taken(now+3*slotLength), 200)
	b.giveBack(now + 3*slotLength)
	equal(t, "retries after one was given back", taken(now+3*slotLength), 1)
	// The first ones fall out of the span, the requests are still in it.
	equal(t, "retries later", taken(now+10*slotLength), freeRetries)
	equal(t, "retries after a long pause", taken(now+1000*slotLength), freeRetries)
	b.request(now + 5*slotLength) // a clock that is behind counts as of now, and breaks nothing
	equal(t, "retries for one late request", taken(now+1000*slotLength), 0)
}

func TestBudgetHoldsHoweverManyAskAtOnce(t *testing.T) {
	b := &budget{share: 20}
	now := 7 * slotLength
	for range 500 {
		b.request(now)
	}
	var taken atomic.Int64
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 1000 {
				if b.spend(now) {
					taken.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := taken.Load(); n > 120 || n < 60 {
		t.Errorf("%d retries, want at most 120 and not many fewer", n)
	}
}

func TestPausesGrowAndAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for sent := 1; sent < 10; sent++ {
			begun := time.Now()
			pause(sent)
			mean := min(firstPause<<(sent-1), longestPause)
			if took := time.Since(begun); took < mean/2 || took >= mean*3/2 {
				t.Errorf("pause %d took %v, want %v and half of it more or less", sent, took, mean)
			}
		}
	})
}

// pieces is a body of a client that gives one piece a read and breaks in the end
// if err is set.
type pieces struct {
	list   []string
	err    error
	closed bool
}

func (b *pieces) Read(p []byte) (int, error) {
	if len(b.list) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		return 0, io.EOF
	}
	n := copy(p, b.list[0])
	if b.list[0] = b.list[0][n:]; b.list[0] == "" {
		b.list = b.list[1:]
	}
	return n, nil
}
func (b *pieces) Ready() bool  { return true }
func (b *pieces) Close() error { b.closed = true; return nil }

// broken is an attempt without an answer: nobody reads the body any more.
var broken = &exchange.Error{Reason: exchange.UpstreamReset}

func TestBodiesAreReplayedWholeOrNotAtAll(t *testing.T) {
	long := strings.Repeat("x", maxReplay)
	for _, c := range []struct {
		name  string
		body  *pieces
		reads int // before the attempt fails; -1 is all
		want  string
		again bool
	}{
		{"all was read", &pieces{list: []string{"ab", "c"}}, -1, "abc", true},
		{"none was read", &pieces{list: []string{"ab", "c"}}, 0, "abc", true},
		{"some was read", &pieces{list: []string{"ab", "c"}}, 1, "", false},
		{"just as much as is kept", &pieces{list: []string{long}}, -1, long, true},
		{"more than is kept", &pieces{list: []string{long, "x"}}, -1, "", false},
		{"broke off", &pieces{list: []string{"ab"}, err: io.ErrUnexpectedEOF}, -1, "", false},
	} {
		ex := exchangetest.New(t, exchangetest.Head("PUT", "/"))
		ex.Request.Length, ex.Request.Body = -1, newReplay(c.body, -1, maxReplay)
		p := make([]byte, copySize)
		for i := 0; i != c.reads; i++ {
			n, err := ex.Request.Body.Read(p)
			ex.Received += int64(n)
			if err != nil {
				break
			}
		}
		if got := repeatable(ex, broken); got != c.again {
			t.Errorf("%s: repeatable %v, want %v", c.name, got, c.again)
		}
		if !c.again {
			continue
		}
		for range 2 { // as often as there are attempts
			if !repeatable(ex, broken) || !afresh(ex) {
				t.Errorf("%s: not repeatable once more", c.name)
			}
			got, err := io.ReadAll(ex.Request.Body)
			if err != nil || string(got) != c.want {
				t.Errorf("%s: %d bytes again, %v, want %d", c.name, len(got), err, len(c.want))
			}
		}
		ex.Request.Body.Close()
		equal(t, c.name+": closed", c.body.closed, false)
	}
	given := &pieces{list: []string{"ab"}}
	ex := exchangetest.New(t, exchangetest.Head("PUT", "/"))
	ex.Request.Body = newReplay(given, -1, maxReplay)
	ex.Request.Body.Close()
	equal(t, "repeatable after it was given up", repeatable(ex, broken), false)
	equal(t, "the client's body was given up", given.closed, true)
}

func TestOnlyIdempotentRequestsAreRepeated(t *testing.T) {
	for method, want := range map[string]bool{
		"GET": true, "HEAD": true, "OPTIONS": true, "TRACE": true, "PUT": true, "DELETE": true,
		"POST": false, "PATCH": false, "CONNECT": false, "get": false, "PURGE": false,
	} {
		ex := exchangetest.New(t, exchangetest.Head(method, "/"))
		equal(t, method, repeatable(ex, broken), want)
		ex.Request.Upgrade = "websocket"
		equal(t, method+" with an upgrade", repeatable(ex, broken), false)
	}
}
