package notice

import (
	"encoding/json"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"headgate/internal/event"
	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// Config are the settings of a notice: a message to people about events. Exactly one of
// `email`, `ntfy`, `gotify`, `discord`, `slack`, `telegram`, `matrix`, `teams` and `json`
// is set. What cannot be delivered is tried again for a day.
type Config struct {
	// Email sends messages by SMTP.
	Email *Email `json:"email,omitempty"`
	// Ntfy publishes messages to a topic of ntfy.
	Ntfy *Ntfy `json:"ntfy,omitempty"`
	// Gotify sends messages to a Gotify server.
	Gotify *Gotify `json:"gotify,omitempty"`
	// Discord posts messages to a channel of Discord.
	Discord *Discord `json:"discord,omitempty"`
	// Slack posts messages to a channel of Slack, or of a server that accepts its format,
	// such as Mattermost.
	Slack *Slack `json:"slack,omitempty"`
	// Telegram sends messages with a bot of Telegram.
	Telegram *Telegram `json:"telegram,omitempty"`
	// Matrix sends messages to a room of Matrix.
	Matrix *Matrix `json:"matrix,omitempty"`
	// Teams posts messages to a channel of Microsoft Teams.
	Teams *Teams `json:"teams,omitempty"`
	// JSON sends a JSON document of your own by POST.
	JSON *JSON `json:"json,omitempty"`
	// Events are the types of events, such as proxy.down, or certificate.* for all of an
	// object. Absent means all.
	Events []string `json:"events,omitempty" max:"64" example:"[proxy.*, certificate.*, acme.*]"`
	// Level is the lowest level of events that are sent.
	Level event.Level `json:"level" default:"warning" enum:"info,warning,error"`
	// Digest is for how long events are collected into one message. Absent means that each
	// is sent immediately; several within ten seconds are one message.
	Digest unit.Duration `json:"digest,omitempty" min:"1m" max:"24h" example:"15m"`
	// Quiet are hours in which messages are held back. They are sent when these hours end.
	Quiet *Quiet `json:"quiet,omitempty"`
	// Urgent is the lowest level of events that are sent immediately, also in quiet hours and
	// with a digest: `error`, `warning`, or `none`.
	Urgent Urgent `json:"urgent" default:"error" enum:"error,warning,none"`
	// Active is whether messages are sent. Events that occur while it is false are never
	// sent.
	Active bool `json:"active" default:"true"`
}

// Urgent is the lowest level of events that do not wait.
type Urgent string

// The values of urgent that are not a level.
const noneUrgent Urgent = "none"

// Quiet are hours of every day in which messages wait.
type Quiet struct {
	// From is when they start, as hh:mm.
	From string `json:"from" required:"true" max:"5" example:"22:00"`
	// Until is when they end, as hh:mm. If it is before from, it is on the next day.
	Until string `json:"until" required:"true" max:"5" example:"07:00"`
	// Zone is the time zone. Absent means that of the machine.
	Zone string `json:"zone,omitempty" max:"64" example:"Europe/Berlin"`
}

// Email is where messages are sent by SMTP.
type Email struct {
	// Server is the SMTP server as host or host:port. The port is 587 with STARTTLS, 465
	// with TLS and 25 without.
	Server string `json:"server" required:"true" max:"256" example:"smtp.example.com"`
	// TLS is `starttls` for a connection that is upgraded before anything is sent, `tls`
	// for one that starts with TLS, or `none`. The certificate must be valid.
	TLS TLSMode `json:"tls" default:"starttls" enum:"starttls,tls,none"`
	// User is the name to sign in with at the server. Absent means that the server
	// requires no sign-in.
	User string `json:"user,omitempty" max:"256" example:"alerts@example.com"`
	// Password is the password, or an app password.
	Password string `json:"password,omitempty" secret:"true" max:"1024" example:"${SMTP_PASSWORD}"`
	// From is the sender's address.
	From string `json:"from" required:"true" max:"320" example:"headgate <alerts@example.com>"`
	// To are the recipients' addresses.
	To []string `json:"to" required:"true" min:"1" max:"32" example:"[ops@example.com]"`
}

// TLSMode is how the connection to an SMTP server is encrypted.
type TLSMode string

// The modes of TLS.
const (
	startTLS TLSMode = "starttls"
	wholeTLS TLSMode = "tls"
	noTLS    TLSMode = "none"
)

// Ntfy is a topic of ntfy.
type Ntfy struct {
	// URL is the server.
	URL string `json:"url" default:"https://ntfy.sh" max:"2048"`
	// Topic is the topic. Anyone who knows the name of a topic that is not protected can read
	// it.
	Topic string `json:"topic" required:"true" max:"64" example:"headgate-4f7a"`
	// Token is an access token of the server.
	Token string `json:"token,omitempty" secret:"true" max:"1024" example:"${NTFY_TOKEN}"`
}

// Gotify is an application of a Gotify server.
type Gotify struct {
	// URL is the server.
	URL string `json:"url" required:"true" max:"2048" example:"https://gotify.example.com"`
	// Token is the token of the application.
	Token string `json:"token" required:"true" secret:"true" max:"1024" example:"${GOTIFY_TOKEN}"`
}

// Discord is a webhook of a channel.
type Discord struct {
	// URL is the webhook URL of the channel, which contains its token.
	URL string `json:"url" required:"true" secret:"true" max:"2048" example:"${DISCORD_WEBHOOK}"`
}

// Slack is an incoming webhook.
type Slack struct {
	// URL is the webhook URL, which contains its token.
	URL string `json:"url" required:"true" secret:"true" max:"2048" example:"${SLACK_WEBHOOK}"`
}

// Telegram is a chat and the bot that writes to it.
type Telegram struct {
	// URL is the server of the bot API.
	URL string `json:"url" default:"https://api.telegram.org" max:"2048"`
	// Token is the token of the bot.
	Token string `json:"token" required:"true" secret:"true" max:"256" example:"${TELEGRAM_TOKEN}"`
	// Chat is the ID of the chat, or the @name of a channel.
	Chat string `json:"chat" required:"true" max:"64" example:"-1001234567890"`
}

// Matrix is a room and the account that writes to it.
type Matrix struct {
	// URL is the homeserver.
	URL string `json:"url" required:"true" max:"2048" example:"https://matrix.example.com"`
	// Room is the ID of the room. The account must have joined it.
	Room string `json:"room" required:"true" max:"255" example:"!abcdef:example.com"`
	// Token is an access token of the account.
	Token string `json:"token" required:"true" secret:"true" max:"1024" example:"${MATRIX_TOKEN}"`
}

// Teams is a webhook of a Teams channel, from the Workflows app.
type Teams struct {
	// URL is the webhook URL, which contains its token.
	URL string `json:"url" required:"true" secret:"true" max:"2048" example:"${TEAMS_WEBHOOK}"`
}

// JSON is a server that accepts JSON.
type JSON struct {
	// URL is where messages are sent by POST.
	URL string `json:"url" required:"true" max:"2048" example:"https://chat.example.com/hook"`
	// Authorization is the value of the Authorization header.
	Authorization string `json:"authorization,omitempty" secret:"true" max:"4096" example:"Bearer ${CHAT_TOKEN}"`
	// Body is the JSON document. In its texts {title}, {text}, {level}, {type}, {object},
	// {time} and {count} are replaced.
	Body string `json:"body" required:"true" expand:"no" max:"16384" example:"{\"title\": \"{title}\", \"message\": \"{text}\"}"`
}

// Preset returns the name of the service that is set, "" if it is none.
func (c *Config) Preset() string {
	names := c.presets()
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// presets returns the names of the services that are set.
func (c *Config) presets() []string {
	var set []string
	for _, p := range []struct {
		name string
		set  bool
	}{
		{"email", c.Email != nil}, {"ntfy", c.Ntfy != nil}, {"gotify", c.Gotify != nil}, {"discord", c.Discord != nil}, {"slack", c.Slack != nil},
		{"telegram", c.Telegram != nil}, {"matrix", c.Matrix != nil}, {"teams", c.Teams != nil}, {"json", c.JSON != nil},
	} {
		if p.set {
			set = append(set, p.name)
		}
	}
	return set
}

// Credentials returns the secrets of the notice, each with the destination that it is sent
// to. The destination is empty for a secret that contains it.
func (c *Config) Credentials() map[string]string {
	all := map[string]string{}
	add := func(secret, to string) {
		if secret != "" {
			all[secret] = to
		}
	}
	switch {
	case c.Email != nil:
		add(c.Email.Password, "smtp "+c.Email.Server+" "+string(c.Email.TLS))
	case c.Ntfy != nil:
		add(c.Ntfy.Token, c.Ntfy.URL)
	case c.Gotify != nil:
		add(c.Gotify.Token, c.Gotify.URL)
	case c.Telegram != nil:
		add(c.Telegram.Token, c.Telegram.URL)
	case c.Matrix != nil:
		add(c.Matrix.Token, c.Matrix.URL)
	case c.JSON != nil:
		add(c.JSON.Authorization, c.JSON.URL)
	case c.Discord != nil:
		add(c.Discord.URL, "")
	case c.Slack != nil:
		add(c.Slack.URL, "")
	case c.Teams != nil:
		add(c.Teams.URL, "")
	}
	return all
}

// Check reports what is wrong with the settings, which are at at.
func (c *Config) Check(at schema.Place) {
	switch set := c.presets(); len(set) {
	case 0:
		at.Problem("no service is set", "add one of email, ntfy, gotify, discord, slack, telegram, matrix, teams and json")
	case 1:
	default:
		at.Field(set[1]).Problem("several services are set: "+strings.Join(set, ", "), "keep one, and add a notice for each of the others")
	}
	for i, pattern := range c.Events {
		if err := event.CheckPattern(pattern); err != nil {
			at.Field("events").Index(i).Problem(err.Error(), "the reference page of events lists them")
		}
	}
	c.Quiet.check(at.Field("quiet"))
	c.Email.check(at.Field("email"))
	for _, u := range c.urls() {
		checkURL(u.url, at.Field(u.field).Field("url"))
	}
	if c.Ntfy != nil && c.Ntfy.Topic != "" && !topicName.MatchString(c.Ntfy.Topic) {
		at.Field("ntfy").Field("topic").Problemf("use letters, digits, - and _", "invalid topic %q", c.Ntfy.Topic)
	}
	if c.Matrix != nil && c.Matrix.Room != "" && !strings.HasPrefix(c.Matrix.Room, "!") {
		at.Field("matrix").Field("room").Problem("not the ID of a room", "write the internal ID, which starts with !; clients show it in the settings of the room")
	}
	if c.JSON != nil && c.JSON.Body != "" {
		if _, err := newTemplate(c.JSON.Body); err != nil {
			at.Field("json").Field("body").Problem(err.Error(), "write JSON; variables are replaced in its texts")
		}
	}
}

var topicName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

type namedURL struct{ field, url string }

// urls returns the URL of the service that is set, with its field.
func (c *Config) urls() []namedURL {
	switch {
	case c.Ntfy != nil:
		return []namedURL{{"ntfy", c.Ntfy.URL}}
	case c.Gotify != nil:
		return []namedURL{{"gotify", c.Gotify.URL}}
	case c.Discord != nil:
		return []namedURL{{"discord", c.Discord.URL}}
	case c.Slack != nil:
		return []namedURL{{"slack", c.Slack.URL}}
	case c.Telegram != nil:
		return []namedURL{{"telegram", c.Telegram.URL}}
	case c.Matrix != nil:
		return []namedURL{{"matrix", c.Matrix.URL}}
	case c.Teams != nil:
		return []namedURL{{"teams", c.Teams.URL}}
	case c.JSON != nil:
		return []namedURL{{"json", c.JSON.URL}}
	}
	return nil
}

// checkURL reports a URL that messages cannot be sent to. Plain http is accepted for
// addresses of private networks only: messages and tokens would be readable on the way.
func checkURL(text string, at schema.Place) {
	if text == "" {
		return // it is required
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		at.Problem("the URL is not valid", "write it as https://host/path")
	case u.User != nil:
		at.Problem("the URL contains a user", "remove it; use the token of the service")
	case u.Fragment != "":
		at.Problem("the URL contains a fragment", "remove the # and what follows it")
	case u.Scheme == "http" && !private(u.Hostname()):
		at.Problem("the URL is not https", "write https://; http is accepted for private addresses and names without a dot")
	}
}

// private reports whether a host is on this machine or in a private network, as far as its
// name shows.
func private(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		a = a.Unmap()
		return a.IsLoopback() || a.IsPrivate()
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".internal") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".lan")
}

func (e *Email) check(at schema.Place) {
	if e == nil {
		return
	}
	host, port, err := e.address()
	if e.Server != "" && (err != nil || host == "" || strings.ContainsAny(host, " /@")) {
		at.Field("server").Problemf("write host or host:port, such as smtp.example.com:587", "invalid server %q", e.Server)
	}
	_ = port
	if e.From != "" && !validAddress(e.From) {
		at.Field("from").Problemf("write name@example.com, or Name <name@example.com>", "invalid address %q", e.From)
	}
	for i, to := range e.To {
		if !validAddress(to) {
			at.Field("to").Index(i).Problemf("write name@example.com", "invalid address %q", to)
		}
	}
	if (e.User == "") != (e.Password == "") {
		at.Problem("user and password are set together", "set both, or neither")
	}
	if e.TLS == noTLS && e.Password != "" && !loopback(host) {
		at.Field("tls").Problem("the password would be sent unencrypted", "write starttls or tls")
	}
}

func validAddress(text string) bool {
	a, err := mail.ParseAddress(text)
	return err == nil && !strings.ContainsAny(a.Address, "\r\n")
}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.Unmap().IsLoopback()
}

// address returns the host and port of the server.
func (e *Email) address() (host, port string, err error) {
	port = map[TLSMode]string{startTLS: "587", wholeTLS: "465", noTLS: "25"}[e.TLS]
	if _, err := netip.ParseAddr(e.Server); err == nil || !strings.Contains(e.Server, ":") {
		return e.Server, port, nil
	}
	host, port, err = net.SplitHostPort(e.Server)
	if err != nil {
		return "", "", err
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return "", "", fmt.Errorf("invalid port %q", port)
	}
	return host, port, nil
}

func (q *Quiet) check(at schema.Place) {
	if q == nil {
		return
	}
	from, wrongFrom := clockTime(q.From)
	until, wrongUntil := clockTime(q.Until)
	for field, err := range map[string]error{"from": wrongFrom, "until": wrongUntil} {
		if err != nil {
			at.Field(field).Problem("not a time of day", "write it as 22:00")
		}
	}
	if wrongFrom == nil && wrongUntil == nil && from == until {
		at.Field("until").Problem("from and until are the same", "remove quiet, or set different times")
	}
	if _, err := q.location(); err != nil {
		at.Field("zone").Problemf("write a name such as Europe/Berlin; the machine needs the tz database", "unknown time zone %q", q.Zone)
	}
}

// clockTime returns the time since midnight of a text as hh:mm.
func clockTime(text string) (time.Duration, error) {
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != 5 {
		return 0, fmt.Errorf("invalid time of day %q", text)
	}
	return time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute, nil
}

func (q *Quiet) location() (*time.Location, error) {
	if q.Zone == "" {
		return time.Local, nil
	}
	return time.LoadLocation(q.Zone)
}

// template is a JSON document in whose texts variables are replaced.
type template struct{ tree any }

func newTemplate(text string) (*template, error) {
	var tree any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	return &template{tree}, nil
}

// render returns the document with the values of variables in its texts.
func (t *template) render(values map[string]string) ([]byte, error) {
	pairs := make([]string, 0, 2*len(values))
	for name, v := range values {
		pairs = append(pairs, "{"+name+"}", v)
	}
	return json.Marshal(replaceIn(t.tree, strings.NewReplacer(pairs...)))
}

func replaceIn(v any, r *strings.Replacer) any {
	switch v := v.(type) {
	case string:
		return r.Replace(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = replaceIn(e, r)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[name] = replaceIn(e, r)
		}
		return out
	}
	return v
}
