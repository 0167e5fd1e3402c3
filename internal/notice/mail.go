package notice

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	netmail "net/mail"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"headgate/internal/server/safedial"
	"headgate/internal/setting/shown"
)

// maxReplies is how many bytes are read of an SMTP server in one session.
const maxReplies = 256 << 10

// mail sends a message by SMTP. The whole session is bounded by ctx.
func (s *Sender) mail(ctx context.Context, e *Email, m *Message) Outcome {
	text, err := e.compose(m)
	if err != nil {
		return Outcome{Err: err, Rejected: true}
	}
	answer, err := s.submit(ctx, e, text)
	if err == nil {
		return Outcome{Status: 250, Answer: shown.Line(answer, maxShown)}
	}
	return refusal(ctx, err)
}

// refusal returns the outcome of a session that failed. A reply 4xx is temporary, and 5xx
// rejects the message (RFC 5321, section 4.2.1).
func refusal(ctx context.Context, err error) Outcome {
	var reply *textproto.Error
	if errors.As(err, &reply) {
		answer := shown.Line(fmt.Sprintf("%d %s", reply.Code, reply.Msg), maxShown)
		return Outcome{Status: reply.Code, Answer: answer, Err: errors.New(shown.Line(err.Error(), maxShown)), Rejected: reply.Code >= 500}
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("no reply within %v", sendTimeout)
	}
	return Outcome{Err: errors.New(shown.Line(err.Error(), maxShown))}
}

// compose returns the message in the format of RFC 5322.
func (e *Email) compose(m *Message) ([]byte, error) {
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := msg.From(e.From); err != nil {
		return nil, fmt.Errorf("the sender's address: %w", err)
	}
	if err := msg.To(e.To...); err != nil {
		return nil, fmt.Errorf("a recipient's address: %w", err)
	}
	host := "headgate"
	if from, err := netmail.ParseAddress(e.From); err == nil {
		_, host, _ = strings.Cut(from.Address, "@")
	}
	msg.SetMessageIDWithValue(m.id() + "@" + host)
	msg.SetDateWithValue(time.Now())
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no vacation replies
	msg.Subject(m.title())
	msg.SetBodyString(mail.TypeTextPlain, m.text()+"\n")
	var b bytes.Buffer
	if _, err := msg.WriteTo(&b); err != nil {
		return nil, fmt.Errorf("compose the message: %w", err)
	}
	return b.Bytes(), nil
}

// submit delivers a composed message to the server and returns its last reply.
func (s *Sender) submit(ctx context.Context, e *Email, text []byte) (string, error) {
	host, port, err := e.address()
	if err != nil {
		return "", err
	}
	settings := &tls.Config{ServerName: host, RootCAs: s.Roots, MinVersion: tls.VersionTLS12}
	conn, err := s.connect(ctx, e.TLS, net.JoinHostPort(host, port), settings)
	if err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return "", fmt.Errorf("greeting: %w", err)
	}
	if err := c.Hello(helloName()); err != nil {
		return "", fmt.Errorf("EHLO: %w", err)
	}
	if e.TLS == startTLS {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return "", errors.New("the server does not offer STARTTLS; use tls, or another port")
		}
		if err := c.StartTLS(settings); err != nil {
			return "", fmt.Errorf("STARTTLS: %w", err)
		}
	}
	if err := e.signIn(c, host); err != nil {
		return "", err
	}
	return e.transfer(c, text)
}

// connect opens the connection, with TLS where it starts with it.
func (s *Sender) connect(ctx context.Context, mode TLSMode, address string, settings *tls.Config) (net.Conn, error) {
	dialer := net.Dialer{ControlContext: safedial.Control}
	raw, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	end, _ := ctx.Deadline()
	var conn net.Conn = &boundedConn{Conn: raw, left: maxReplies, end: end}
	conn.SetDeadline(end)
	if mode != wholeTLS {
		return conn, nil
	}
	over := tls.Client(conn, settings)
	if err := over.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("TLS: %w", err)
	}
	return over, nil
}

// signIn authenticates with the best mechanism that the server offers. Passwords are not
// sent over connections without TLS, except on this machine.
func (e *Email) signIn(c *smtp.Client, host string) error {
	if e.Password == "" {
		return nil
	}
	ok, offered := c.Extension("AUTH")
	if !ok {
		return errors.New("the server does not offer authentication")
	}
	names, plain := strings.Fields(strings.ToUpper(offered)), loopback(host)
	has := func(name string) bool { return slices.Contains(names, name) }
	var auth smtp.Auth
	switch {
	case has("SCRAM-SHA-256"):
		auth = smtp.ScramSHA256Auth(e.User, e.Password)
	case has("PLAIN"):
		auth = smtp.PlainAuth("", e.User, e.Password, host, plain)
	case has("LOGIN"):
		auth = smtp.LoginAuth(e.User, e.Password, host, plain)
	default:
		return fmt.Errorf("the server offers no supported authentication, only %s", shown.Line(offered, 100))
	}
	if err := c.Auth(auth); err != nil {
		return fmt.Errorf("sign in as %s: %w", e.User, err)
	}
	return nil
}

// transfer sends the envelope and the message.
func (e *Email) transfer(c *smtp.Client, text []byte) (string, error) {
	from, err := netmail.ParseAddress(e.From)
	if err != nil {
		return "", err
	}
	if err := c.Mail("<" + from.Address + ">"); err != nil {
		return "", fmt.Errorf("MAIL FROM: %w", err)
	}
	for _, to := range e.To {
		a, err := netmail.ParseAddress(to)
		if err != nil {
			return "", err
		}
		if err := c.Rcpt("<" + a.Address + ">"); err != nil {
			return "", fmt.Errorf("RCPT TO %s: %w", a.Address, err)
		}
	}
	w, err := c.Data()
	if err != nil {
		return "", fmt.Errorf("DATA: %w", err)
	}
	if _, err := w.Write(text); err != nil {
		return "", fmt.Errorf("send the message: %w", err)
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("end of the message: %w", err)
	}
	answer := ""
	if d, ok := w.(*smtp.DataCloser); ok {
		answer = d.ServerResponse()
	}
	c.Quit() // the message is accepted, whatever the server replies
	return answer, nil
}

// helloName is the name that the client introduces itself with.
func helloName() string {
	if name, err := os.Hostname(); err == nil && name != "" && !strings.ContainsAny(name, " \r\n") {
		return name
	}
	return "localhost"
}

// boundedConn reads at most left bytes and moves no deadline beyond end.
type boundedConn struct {
	net.Conn
	left int
	end  time.Time
}

// Read reads what is left of the bound.
func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, fmt.Errorf("the server sent more than %d bytes: %w", maxReplies, io.ErrUnexpectedEOF)
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// SetDeadline sets a deadline that is not later than the end of the session.
func (c *boundedConn) SetDeadline(t time.Time) error {
	if t.IsZero() || t.After(c.end) {
		t = c.end
	}
	return c.Conn.SetDeadline(t)
}
