package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"

	"headgate/internal/admin/api"
	"headgate/internal/feature/cache"
)

const purgePath = "/cache/purge"

// purgeSize is how long the text of a purge may be, in bytes.
const purgeSize = 64 << 10

// purge takes responses out of caches. There is no sign-in, so only programs on
// this machine may ask, and no page in a browser: such a page cannot send JSON
// without asking first, and says where it comes from.
func purge(do func(cache.Purge) (purged, caches int)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		if status, why := mayPurge(rq); why != "" {
			if status == http.StatusMethodNotAllowed {
				w.Header().Set("Allow", http.MethodPost)
			}
			text(w, status, why+"\n")
			return
		}
		var q cache.Purge
		if err := readPurge(http.MaxBytesReader(w, rq.Body, purgeSize), &q); err != nil {
			text(w, http.StatusBadRequest, err.Error()+"\n")
			return
		}
		purged, caches := do(q)
		if caches == 0 {
			text(w, http.StatusNotFound, "there is no such cache\n")
			return
		}
		body, _ := json.Marshal(map[string]int{"purged": purged, "caches": caches})
		w.Header().Set("Content-Type", "application/json")
		w.Write(append(body, '\n'))
	})
}

// mayPurge returns "" for a request that may be heeded.
func mayPurge(rq *http.Request) (status int, why string) {
	peer, err := netip.ParseAddrPort(rq.RemoteAddr)
	if loopback := err == nil && peer.Addr().Unmap().IsLoopback(); !loopback && !api.IsLocal(rq.Context()) {
		return http.StatusForbidden, "caches are purged from this machine only"
	}
	if rq.Method != http.MethodPost {
		return http.StatusMethodNotAllowed, "send a POST"
	}
	if site := rq.Header.Get("Sec-Fetch-Site"); rq.Header.Get("Origin") != "" || site != "" && site != "none" {
		return http.StatusForbidden, "not from a page in a browser"
	}
	if kind, _, err := mime.ParseMediaType(rq.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return http.StatusUnsupportedMediaType, "send Content-Type: application/json"
	}
	return 0, ""
}

func readPurge(r io.Reader, q *cache.Purge) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(q); err != nil {
		return fmt.Errorf("%w; send an object like {\"url\": \"https://shop.example.com/page\"}, with one of url, prefix, tag and all, and proxy and soft if you like", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("send one JSON object")
	}
	return q.Check()
}
