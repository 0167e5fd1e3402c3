package control

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"headgate/internal/config"
	"headgate/internal/testhouse"
)

// Several operators and the watch of the file are at work at once. What was acknowledged is
// in the file and in one revision each, in one order.
func TestWritersAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	h := start(t, document(201, "a "+at[0]))
	var applied sync.Map
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for i := range 8 {
				line := fmt.Sprintf("# writer %d line %d\n", w, i)
				for {
					e := Edit{Cause: Cause{Via: ViaAPI, Who: fmt.Sprint(w)}, Do: func(docs config.Documents, _ *config.Config) (config.Documents, error) {
						docs.List[0].Data = append(append([]byte(nil), docs.List[0].Data...), line...)
						return docs, nil
					}}
					if i%2 == 0 {
						_, e.IfMatch, _ = h.c.Documents()
					}
					ev, err := h.c.Change(e)
					if stale := (*Stale)(nil); errors.As(err, &stale) {
						continue
					}
					if err != nil {
						t.Errorf("%s: %v", line, err)
						return
					}
					if was, twice := applied.LoadOrStore(ev.Revision, line); twice {
						t.Errorf("revision %s is of %q and %q", ev.Revision, was, line)
					}
					break
				}
			}
		})
	}
	all.Wait()
	h.c.changed()
	text := h.text()
	applied.Range(func(revision, line any) bool {
		if n := strings.Count(text, line.(string)); n != 1 {
			t.Errorf("%s, revision %s: %d times in the file", line, revision, n)
		}
		return true
	})
	list := h.c.Revisions(0, 1000)
	for i, r := range list {
		if r.Number != len(list)-i {
			t.Errorf("revision %d is %d", len(list)-i, r.Number)
		}
	}
	if tag := ETagOf(list[0]); tag != h.c.ETag() {
		t.Errorf("the newest revision has the ETag %s, and %s is in force", tag, h.c.ETag())
	}
	expectStatus(t, at[0], 201)
}
