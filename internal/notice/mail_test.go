package notice

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"headgate/internal/certs/certstest"
	"headgate/internal/event"
	"headgate/internal/store/memory"
)

// mailServer is an SMTP server of a test. It accepts one connection after another.
type mailServer struct {
	address string
	roots   *x509.CertPool
	got     chan string // the commands and the message of a session
}

// serveMail starts a server that replies as replies says by command, else with 250.
func serveMail(t *testing.T, whole bool, extensions []string, replies map[string]string) *mailServer {
	t.Helper()
	pair := certstest.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "mail"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, nil)
	s := &mailServer{roots: x509.NewCertPool(), got: make(chan string, 10)}
	s.roots.AddCert(pair.Leaf)
	settings := &tls.Config{Certificates: []tls.Certificate{pair}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if whole {
				c = tls.Server(c, settings)
			}
			s.got <- session(c, settings, extensions, replies)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-ended })
	return s
}

// session is one session of SMTP. It returns what the client has sent.
func session(c net.Conn, settings *tls.Config, extensions []string, replies map[string]string) string {
	var seen strings.Builder
	r := bufio.NewReader(c)
	reply := func(command, otherwise string) bool {
		text, ok := replies[command]
		if !ok {
			text = otherwise
		}
		if text == "" {
			io.Copy(io.Discard, r) // no reply until the client leaves
			return false
		}
		_, err := io.WriteString(c, text+"\r\n")
		return err == nil
	}
	if !reply("", "220 mail.test ESMTP") {
		return seen.String()
	}
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return seen.String()
		}
		seen.WriteString(line)
		verb, _, _ := strings.Cut(strings.TrimSpace(strings.ToUpper(line)), " ")
		ok := true
		switch verb {
		case "EHLO":
			ok = reply(verb, "250-mail.test\r\n"+strings.Join(append(extensions, "250 8BITMIME"), "\r\n"))
		case "STARTTLS":
			if ok = reply(verb, "220 go ahead"); ok {
				c = tls.Server(c, settings)
				r = bufio.NewReader(c)
			}
		case "AUTH":
			ok = reply(verb, "235 welcome")
		case "DATA":
			if ok = reply(verb, "354 go on"); ok && replies[verb] == "" {
				for {
					line, err := r.ReadString('\n')
					if err != nil {
						return seen.String()
					}
					seen.WriteString(line)
					if line == ".\r\n" {
						break
					}
				}
				ok = reply(".", "250 2.0.0 queued as 4Xyz")
			}
		case "QUIT":
			reply(verb, "221 bye")
			return seen.String()
		default:
			ok = reply(verb, "250 ok")
		}
		if !ok {
			return seen.String()
		}
	}
}

func (s *mailServer) config(mode TLSMode) *Config {
	return &Config{Email: &Email{Server: s.address, TLS: mode, User: "alerts", Password: "s3cret-word", From: "headgate <alerts@example.com>", To: []string{"ops@example.com", "Ann <ann@example.com>"}}}
}

func send(t *testing.T, s *mailServer, c *Config) Outcome {
	t.Helper()
	sender, _ := open(t, memory.New())
	sender.Roots = s.roots
	e := draft(t)
	e.Text = "Grüße: port web listens\r\nBcc: victim@example.com"
	e.Object = "port wéb\r\nBcc: victim@example.com"
	return sender.deliver(t.Context(), c, &Message{Events: []*event.Event{e}, Instance: "gate1"})
}

var authPlain = []string{"250-STARTTLS", "250-AUTH PLAIN LOGIN"}

// TestMailIsSent holds the session with STARTTLS and TLS, and that neither headers nor
// recipients can be added by the text of an event.
func TestMailIsSent(t *testing.T) {
	for _, mode := range []TLSMode{startTLS, wholeTLS} {
		t.Run(string(mode), func(t *testing.T) {
			s := serveMail(t, mode == wholeTLS, authPlain, nil)
			if o := send(t, s, s.config(mode)); o.Err != nil || o.Status != 250 || !strings.Contains(o.Answer, "queued as 4Xyz") {
				t.Fatalf("%+v", o)
			}
			text := <-s.got
			plain := "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00alerts\x00s3cret-word"))
			for _, want := range []string{plain, "MAIL FROM:<alerts@example.com>", "RCPT TO:<ops@example.com>", "RCPT TO:<ann@example.com>", "Subject:", "Auto-Submitted: auto-generated", "Message-ID: <evt_7@example.com>"} {
				if !strings.Contains(text, want) {
					t.Errorf("missing %q in\n%s", want, text)
				}
			}
			head, _, _ := strings.Cut(text, "\r\n\r\n")
			if strings.Contains(head, "\nBcc:") || strings.Contains(text, "RCPT TO:<victim") {
				t.Errorf("a header was added:\n%s", text)
			}
			if mode == startTLS && strings.Index(text, "STARTTLS") > strings.Index(text, "AUTH") {
				t.Error("the password was sent before STARTTLS")
			}
		})
	}
}

// TestMailThatIsNotAccepted holds what becomes of replies, and of servers that are broken.
func TestMailThatIsNotAccepted(t *testing.T) {
	for name, test := range map[string]struct {
		extensions []string
		replies    map[string]string
		err        string
		status     int
		rejected   bool
	}{
		"a wrong password":      {authPlain, map[string]string{"AUTH": "535 5.7.8 bad credentials"}, "bad credentials", 535, true},
		"greylisting":           {authPlain, map[string]string{"RCPT": "451 4.7.1 try again later"}, "try again later", 451, false},
		"a rejected message":    {authPlain, map[string]string{".": "554 5.7.1 spam"}, "spam", 554, true},
		"no STARTTLS":           {nil, nil, "does not offer STARTTLS", 0, false},
		"no authentication":     {[]string{"250-STARTTLS"}, nil, "does not offer authentication", 0, false},
		"a server that is busy": {authPlain, map[string]string{"": "421 too many connections"}, "too many connections", 421, false},
		"endless replies":       {authPlain, map[string]string{"": "220-" + strings.Repeat("x", maxReplies+10)}, "more than", 0, false},
		"not SMTP":              {authPlain, map[string]string{"": "HTTP/1.1 400 Bad Request"}, "greeting", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveMail(t, false, test.extensions, test.replies)
			o := send(t, s, s.config(startTLS))
			if o.Err == nil || !strings.Contains(o.Err.Error(), test.err) || o.Status != test.status || o.Rejected != test.rejected {
				t.Errorf("%+v", o)
			}
			if text := fmt.Sprint(o); strings.Contains(text, "s3cret-word") {
				t.Errorf("the password is shown: %s", text)
			}
		})
	}
}

// TestACertificateOfAMailServerIsVerified holds that no password is sent to another server.
func TestACertificateOfAMailServerIsVerified(t *testing.T) {
	s := serveMail(t, false, authPlain, nil)
	s.roots = x509.NewCertPool()
	o := send(t, s, s.config(startTLS))
	if o.Err == nil || !strings.Contains(o.Err.Error(), "certificate") {
		t.Errorf("%+v", o)
	}
	if text := <-s.got; strings.Contains(text, "AUTH") {
		t.Errorf("sent %s", text)
	}
}

// TestMailIsNotSentToAddressesOfTheLink holds the check of addresses.
func TestMailIsNotSentToAddressesOfTheLink(t *testing.T) {
	s := &mailServer{address: "169.254.169.254:25"}
	if o := send(t, s, s.config(startTLS)); o.Err == nil || !strings.Contains(o.Err.Error(), "not allowed") {
		t.Errorf("%+v", o)
	}
}
