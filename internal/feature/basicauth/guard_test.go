package basicauth

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/setting/password"
)

func mustUser(t testing.TB, u User) *user {
	t.Helper()
	hash, err := password.Parse(u.PasswordHash)
	if err != nil {
		t.Fatal(err)
	}
	return &user{name: u.Name, hash: hash}
}

func TestMarkIsAnHMAC(t *testing.T) {
	v := newVerified()
	var key [sha256.BlockSize]byte
	for i := range key {
		key[i] = v.inner[i] ^ 0x36
	}
	for _, text := range []string{"", "YWRhOnNlY3JldA==", string(make([]byte, longestCoded))} {
		h := hmac.New(sha256.New, key[:])
		scope := [scopeSize]byte{7}
		h.Write(append(scope[:], text...))
		if got, want := v.mark(&scope, text), h.Sum(nil); string(got[:]) != string(want) {
			t.Errorf("%d bytes: %x, want %x", len(text), got, want)
		}
	}
}

// guardOf returns the guard of an Env, with a clock of the test's.
func guardOf(env exchange.Env) (*guard, *atomic.Int64) {
	g := exchange.Keep(env, "basic_auth", nil, newGuard)
	now := &atomic.Int64{}
	now.Store(int64(time.Hour))
	g.now = now.Load
	return g, now
}

// A flood of wrong passwords gets 429, and keeps nobody else out.
func TestFloodOfWrongPasswords(t *testing.T) {
	env := exchangetest.Env(t)
	_, now := guardOf(env)
	f := compile(t, settings(), env)
	wrong := func(n int) (status int, retry string) {
		got, _ := filter(t, f, with(credentials(fmt.Sprintf("user%d:guess", n))), exchangetest.From("2001:db8::1"))
		return got.Status, got.Field("Retry-After")
	}
	for i := range wrongAtOnce {
		if status, _ := wrong(i); status != 401 {
			t.Fatalf("guess %d: status %d, want 401", i+1, status)
		}
	}
	for i := range 100 {
		if status, retry := wrong(1000 + i); status != 429 || retry != "3" {
			t.Fatalf("guess %d: status %d, Retry-After %q, want 429, 3", i, status, retry)
		}
	}
	// The right password does not help the flooder's network now, but a pair that
	// was verified before does; and everyone else comes in.
	if got, _ := filter(t, f, with(credentials("ada:secret")), exchangetest.From("2001:db8::2")); got.Status != 429 {
		t.Errorf("from the flooder's network: status %d, want 429", got.Status)
	}
	if got, _ := filter(t, f, with(credentials("ada:secret")), exchangetest.From("2001:db8:0:1::1")); got.Status != 200 {
		t.Errorf("from elsewhere: status %d, want 200", got.Status)
	}
	if got, _ := filter(t, f, with(credentials("ada:secret")), exchangetest.From("2001:db8::2")); got.Status != 200 {
		t.Errorf("a verified pair from the flooder's network: status %d, want 200", got.Status)
	}
	now.Add(int64(wrongEach))
	if status, _ := wrong(1); status != 401 {
		t.Errorf("after %v: status %d, want 401", wrongEach, status)
	}
	if status, _ := wrong(2); status != 429 {
		t.Errorf("one more: status %d, want 429", status)
	}
}

// blocked is a verifier of one slot that is taken until release is called.
func blocked(t *testing.T) (d *verifier, release func()) {
	d = &verifier{}
	d.open(1)
	held, begun := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.verify(exchangetest.New(t), &question{client: 1 << 60}, func(*question) verdict { close(begun); <-held; return verdict{} })
	}()
	<-begun
	return d, func() { close(held); <-done }
}

func (d *verifier) counts() (waiting, lines, flights int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.waiting, len(d.mu.lines), len(d.mu.asked)
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 10 s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func numbered(n int) (m mark) {
	m[0], m[1] = byte(n), byte(n>>8)
	return m
}

func TestClientsTakeTurns(t *testing.T) {
	d, release := blocked(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var order []uint64
	add := func(n int, client uint64, clean bool) {
		before, _, _ := d.counts()
		wg.Go(func() {
			d.verify(exchangetest.New(t), &question{mark: numbered(n), client: client, clean: clean}, func(q *question) verdict {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, q.client)
				return verdict{}
			})
		})
		until(t, "in line", func() bool { now, _, _ := d.counts(); return now == before+1 })
	}
	for i, client := range []uint64{1, 1, 1, 1, 2, 2} {
		add(i, client, false)
	}
	for i, client := range []uint64{3, 3, 4} {
		add(10+i, client, true)
	}
	release()
	wg.Wait()
	if got, want := fmt.Sprint(order), "[3 4 3 1 2 1 2 1 1]"; got != want {
		t.Errorf("order %s, want %s: clean clients first, then in turns", got, want)
	}
	if w, l, f := d.counts(); w != 0 || l != 0 || f != 0 || d.mu.running != 0 {
		t.Errorf("%d wait, %d lines, %d flights, %d run; want none", w, l, f, d.mu.running)
	}
}

func TestOnePairIsHashedOnce(t *testing.T) {
	d, release := blocked(t)
	var wg sync.WaitGroup
	var hashed, busy atomic.Int64
	for range maxFollowers + 10 {
		wg.Go(func() {
			if v := d.verify(exchangetest.New(t), &question{client: 7}, func(*question) verdict { hashed.Add(1); return verdict{} }); v.wait > 0 {
				busy.Add(1)
			}
		})
	}
	until(t, "the ones too many are sent away", func() bool { return busy.Load() == 10 })
	release()
	wg.Wait()
	if hashed.Load() != 1 {
		t.Errorf("the pair was hashed %d times, want once", hashed.Load())
	}
}

func TestTheDeskIsBounded(t *testing.T) {
	d, release := blocked(t)
	var wg sync.WaitGroup
	var busy atomic.Int64
	ask := func(n int, client uint64) {
		wg.Go(func() {
			if v := d.verify(exchangetest.New(t), &question{mark: numbered(n), client: client}, func(*question) verdict { return verdict{} }); v.wait > 0 {
				busy.Add(1)
			}
		})
	}
	for i := range maxOfClient + 5 {
		ask(i, 1)
	}
	until(t, "one client's are bounded", func() bool { w, _, _ := d.counts(); return busy.Load() == 5 && w == maxOfClient })
	for i := range maxWaiting - maxOfClient {
		ask(i, uint64(100+i))
	}
	until(t, "full", func() bool { w, _, _ := d.counts(); return w == maxWaiting })
	ask(0, 5) // takes the place of the longest line's last
	until(t, "room is made", func() bool { _, l, _ := d.counts(); return busy.Load() == 6 && l == maxWaiting-maxOfClient+2 })
	release()
	wg.Wait()
	if w, l, f := d.counts(); w != 0 || l != 0 || f != 0 {
		t.Errorf("%d wait, %d lines, %d flights; want none", w, l, f)
	}
}

// A question whose client has left is not hashed.
func TestWhoLeavesIsNotHashed(t *testing.T) {
	d, release := blocked(t)
	ex := exchangetest.New(t)
	ex.Front.(*exchangetest.Front).Left = true
	v := d.verify(ex, &question{client: 2}, func(*question) verdict { t.Error("hashed"); return verdict{} })
	if !v.gone {
		t.Errorf("verdict %+v, want gone", v)
	}
	if w, l, f := d.counts(); w != 0 || l != 0 || f != 1 {
		t.Errorf("%d wait, %d lines, %d flights; want only the one that runs", w, l, f)
	}
	release()
}
