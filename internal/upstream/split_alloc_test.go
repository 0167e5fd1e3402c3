//go:build !race

package upstream

import (
	"testing"

	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
)

func TestSplitAllocatesNothing(t *testing.T) {
	for _, key := range []string{"", "client_ip", "header:X-Tenant", "cookie:sid"} {
		s := newTestSplit(t, 50, target("127.0.0.1:1", 1), target("127.0.0.1:2", 1), key, true)
		cookie := "a=1; sid=7; b=2"
		if key == "" {
			cookie = s.points.plain[3][:len(SplitCookie)+1+pinLength] + "; b=2"
		}
		f := s.Filter()
		ex := exchangetest.New(t)
		conn, front := ex.Conn, ex.Front
		n := testing.AllocsPerRun(1000, func() {
			ex.Reset(conn, front)
			ex.Request.Header.Add(header.Cookie, cookie)
			f.Request(ex)
			s.count(ex, s.Assigned(ex).Group, nil, 0)
			if f.Response != nil {
				f.Response(ex)
			}
		})
		equal(t, "allocations by "+key, n, 0)
	}
}
