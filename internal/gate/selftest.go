package gate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"headgate/internal/credential"
)

// Unreachable is why the sign-in page cannot be reached from this machine.
type Unreachable struct {
	// Since is when it was found.
	Since time.Time
	// Message says what is wrong, Hint what to do.
	Message, Hint string
}

// String returns the issue in one line.
func (u *Unreachable) String() string {
	return "the sign-in page cannot be reached: " + u.Message + "; " + u.Hint
}

// SelfTestPath is the path, before a secret, at which the sign-in page proves that it is
// headgate's. The node that answers need not be the one that asks: they share a key.
const SelfTestPath = "/self-test/"

const (
	// purposeSelfTest is what the response of a self-test is sealed for.
	purposeSelfTest = "self-test"
	// selfTestTimeout bounds one self-test.
	selfTestTimeout = 15 * time.Second
	// failuresInARow is how many self-tests fail before that is reported.
	failuresInARow = 2
)

// selfTestPace is how often the sign-in page is tested.
type selfTestPace struct {
	// first is how long after a change, again after a failure, which doubles up to failing, and
	// fine after a success.
	first, again, failing, fine time.Duration
}

var usualSelfTests = selfTestPace{first: 2 * time.Second, again: 5 * time.Second, failing: time.Minute, fine: 10 * time.Minute}

// selfTest is the state of the self-test.
type selfTest struct {
	changed chan struct{} // has room for one

	mu    sync.Mutex
	found *Unreachable
}

// Unreachable returns why the sign-in page cannot be reached, nil if it can or was not tested.
func (e *Engine) Unreachable() *Unreachable {
	e.selfTest.mu.Lock()
	defer e.selfTest.mu.Unlock()
	return e.selfTest.found
}

// testAgain has the page tested soon: something has changed.
func (e *Engine) testAgain() {
	select {
	case e.selfTest.changed <- struct{}{}:
	default:
	}
}

// selfTestLoop tests the sign-in page from time to time.
func (e *Engine) selfTestLoop(ctx context.Context, pace selfTestPace) {
	timer := time.NewTimer(pace.first)
	defer timer.Stop()
	failures, wait := 0, pace.again
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.selfTest.changed:
			failures, wait = 0, pace.again
			timer.Reset(pace.first)
			continue
		case <-timer.C:
		}
		switch err := e.testOnce(ctx); {
		case ctx.Err() != nil:
			return
		case err == nil || errors.Is(err, errNotTested):
			e.noteSelfTest(nil)
			failures, wait = 0, pace.again
			timer.Reset(pace.fine)
		default:
			if failures++; failures >= failuresInARow {
				e.noteSelfTest(err)
			}
			timer.Reset(wait)
			wait = min(2*wait, pace.failing)
		}
	}
}

// noteSelfTest keeps the result of a self-test, and publishes a change of it.
func (e *Engine) noteSelfTest(err error) {
	t := &e.selfTest
	t.mu.Lock()
	before := t.found
	t.found = nil
	if err != nil {
		message, hint := explainUnreachable(err)
		t.found = &Unreachable{Since: time.Now(), Message: e.SignInOrigin("", "") + ": " + message, Hint: hint}
		if before != nil {
			t.found.Since = before.Since
		}
	}
	now := t.found
	t.mu.Unlock()
	switch {
	case before == nil && now != nil:
		e.o.Log.Warn("the sign-in page cannot be reached", "reason", now.Message, "hint", now.Hint)
		e.publish(Event{Kind: SignInUnreachable, Cause: now.Message})
	case before != nil && now == nil:
		e.o.Log.Info("the sign-in page can be reached again")
		e.publish(Event{Kind: SignInReachable})
	}
}

// Errors of a self-test.
var (
	// errNotTested is of a page that is not tested: there is none, or the test is switched off.
	errNotTested = errors.New("not tested")
	// errOther is of a response that is not of the sign-in page.
	errOther = errors.New("another server responds")
)

// testOnce requests the sign-in page as a browser on this machine does.
func (e *Engine) testOnce(ctx context.Context) error {
	origin := e.SignInOrigin("", "")
	if origin == "" || !e.use.Load().config.SelfTest {
		return errNotTested
	}
	ctx, stop := context.WithTimeout(ctx, selfTestTimeout)
	defer stop()
	secret := credential.NewSecret()
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+SelfTestPath+secret, nil)
	if err != nil {
		return err
	}
	rq.Header.Set("User-Agent", "headgate self-test")
	client := http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: e.o.Roots}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	rs, err := client.Do(rq)
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	switch rs.StatusCode {
	case http.StatusForbidden, http.StatusTooManyRequests:
		return errNotTested // the proxy of the page does not let this machine in, which proves nothing
	case http.StatusOK:
	default:
		return fmt.Errorf("%w, with status %d", errOther, rs.StatusCode)
	}
	proof, err := io.ReadAll(io.LimitReader(rs.Body, 1<<10))
	if err != nil {
		return err
	}
	var proved string
	if !e.openText(purposeSelfTest, string(proof), &proved) || proved != secret {
		return errOther
	}
	return nil
}

// ProveSelfTest returns what the page responds to a self-test with a secret.
func (e *Engine) ProveSelfTest(secret string) (proof string, err error) {
	if !IsSecret(secret) {
		return "", ErrExpired
	}
	return e.sealText(purposeSelfTest, secret)
}

// explainUnreachable returns what is wrong in one line, and what to do.
func explainUnreachable(err error) (message, hint string) {
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var host x509.HostnameError
	var timeout net.Error
	const network = "check the firewall and the port forwarding; if the router does not let machines inside reach its public address, set sign_in.self_test: false"
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "the host does not exist in the DNS", "add an A or AAAA record for this machine"
	case errors.As(err, &name):
		return "the host cannot be looked up: " + name.Err, "check the DNS servers of this machine"
	case errors.As(err, &certificate), errors.As(err, &host):
		return "browsers do not accept the certificate: " + innermost(err), "check the certificate with `headgate status`, and that no other proxy has this address"
	case errors.Is(err, errOther):
		return errOther.Error() + strings.TrimPrefix(err.Error(), errOther.Error()), "check that the host and its port lead to headgate, and not to another proxy or a page of the router"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no response within " + selfTestTimeout.String(), network
	}
	return "no connection: " + innermost(err), network
}

// innermost returns the message of the error at the end of a chain.
func innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err.Error()
		}
		err = next
	}
}
