package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
)

// maxMessage is how long a line of a stream may be, in bytes.
const maxMessage = 4 << 20

// ErrStreamEnded means that the server ended a stream: headgate stopped, or the access of the
// client was revoked.
var ErrStreamEnded = errors.New("the stream has ended: headgate stopped, or your access was revoked")

// Message is one message of a stream: "event" and "data" of text/event-stream.
type Message struct {
	Event string
	Data  []byte
}

// Follow opens a stream and returns its messages until the context is done, which is no error,
// or the stream ends. The last error is ErrStreamEnded, or why the stream could not be read.
func (c *Client) Follow(ctx context.Context, path string, options ...Option) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		rs, err := c.Open(ctx, http.MethodGet, path, nil, options...)
		if err != nil {
			yield(Message{}, err)
			return
		}
		defer rs.Body.Close()
		more, err := readMessages(rs.Body, yield)
		switch {
		case !more || ctx.Err() != nil:
		case err != nil:
			yield(Message{}, fmt.Errorf("follow %s: %w", c.options.Name, err))
		default:
			yield(Message{}, ErrStreamEnded)
		}
	}
}

// readMessages passes the messages of a stream on. more is whether all were wanted.
func readMessages(body io.Reader, yield func(Message, error) bool) (more bool, err error) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxMessage)
	var m Message
	for lines.Scan() {
		line := lines.Bytes()
		switch {
		case len(line) == 0 && len(m.Data) > 0:
			if !yield(m, nil) {
				return false, nil
			}
			m = Message{}
		case bytes.HasPrefix(line, []byte("event: ")):
			m.Event = string(line[len("event: "):])
		case bytes.HasPrefix(line, []byte("data: ")):
			m.Data = append(m.Data, line[len("data: "):]...)
		}
	}
	return true, lines.Err()
}

// FollowEvents returns events as they happen. The query parameters are types and after.
func (c *Client) FollowEvents(ctx context.Context, options ...Option) iter.Seq2[*Event, error] {
	return follow[Event](c, c.Follow(ctx, "/events", options...))
}

// FollowRequests returns requests as they end. The query parameters are those of ListRequests,
// except for the times and pages.
func (c *Client) FollowRequests(ctx context.Context, options ...Option) iter.Seq2[*Request, error] {
	return follow[Request](c, c.Follow(ctx, "/logs/access/stream", options...))
}

// follow reads the data of the messages of a stream.
func follow[T any](c *Client, messages iter.Seq2[Message, error]) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for m, err := range messages {
			out := new(T)
			if err == nil {
				if err = json.Unmarshal(m.Data, out); err != nil {
					err = fmt.Errorf("read the stream of %s: %w", c.options.Name, err)
				}
			}
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

// Backup writes an archive of the state directory to out, encrypted if the passphrase is not
// empty. An archive that is cut short has no valid end, and Restore rejects it.
func (c *Client) Backup(ctx context.Context, out io.Writer, passphrase string) error {
	rs, err := c.Open(ctx, http.MethodPost, "/backup", map[string]string{"passphrase": passphrase})
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	if _, err := io.Copy(out, rs.Body); err != nil {
		return fmt.Errorf("the archive is incomplete: %w", err)
	}
	return nil
}

// Restore sends an archive of Backup and applies it as a change. The query parameters are
// confirm_within and why.
func (c *Client) Restore(ctx context.Context, archive io.Reader, passphrase string, options ...Option) (*Change, error) {
	if passphrase != "" {
		options = append(options[:len(options):len(options)], Passphrase(passphrase))
	}
	rs, err := c.Open(ctx, http.MethodPost, "/restore", io.NopCloser(archive), options...)
	if err != nil {
		return nil, err
	}
	defer rs.Body.Close()
	out := &Change{}
	return out, c.Read(rs, out)
}
