package notice

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"headgate/internal/event"
)

// sendWebhook delivers an event to a webhook once, signed according to Standard Webhooks.
// What the receiver answers is not kept, only the status.
func (s *Sender) sendWebhook(ctx context.Context, h *Hook, key []byte, e *event.Event) Outcome {
	body, err := json.Marshal(e)
	if err != nil {
		return Outcome{Err: fmt.Errorf("write event %d as JSON: %w", e.ID, err)}
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	rq, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return Outcome{Err: errors.New("the URL of the webhook is not valid")}
	}
	id, stamp := messageID(e), strconv.FormatInt(time.Now().Unix(), 10)
	rq.Header.Set("Content-Type", "application/json")
	rq.Header.Set("User-Agent", "headgate-webhook")
	rq.Header["webhook-id"] = []string{id}
	rq.Header["webhook-timestamp"] = []string{stamp}
	rq.Header["webhook-signature"] = []string{"v1," + base64.StdEncoding.EncodeToString(sign(key, id, stamp, body))}
	rs, err := s.client.Do(rq)
	if err != nil {
		return Outcome{Err: brief(err)}
	}
	defer rs.Body.Close()
	io.Copy(io.Discard, io.LimitReader(rs.Body, maxAnswer)) // so that the connection can be kept
	out := Outcome{Status: rs.StatusCode}
	out.conclude(rs.Header, nil)
	return out
}

// messageID returns what is the same whenever a message about an event is sent again. Two machines
// may have events with the same number.
func messageID(e *event.Event) string {
	id := "evt_" + strconv.FormatInt(int64(e.ID), 10)
	if e.Node != "" {
		id += "_" + strings.ReplaceAll(e.Node, ".", "-") // a dot separates the id from the time where it is signed
	}
	return id
}

// brief returns the error of a request without its URL, which may contain a secret.
func brief(err error) error {
	if asked := (*url.Error)(nil); errors.As(err, &asked) {
		return asked.Err
	}
	return err
}

// signingKey returns the key of a secret.
func signingKey(secret string) []byte {
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil {
			return key
		}
	}
	return []byte(secret)
}

// sign returns the signature of a message.
func sign(key []byte, id, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + stamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}
