package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// A model says what to do next. Its messages are those of OpenAI's chat completions.
type model interface {
	next(ctx context.Context, talk []message) (message, error)
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	Calls   []call `json:"tool_calls,omitempty"`
	CallID  string `json:"tool_call_id,omitempty"` // of a result
}

type call struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON, if the model is right
}

// An endpoint is a model that is asked by HTTP, from this process: its key is not in the session, whose
// environment holds no secrets.
type endpoint struct{ url, key, name string }

// endpointOf is the endpoint that the environment names, or nil.
func endpointOf(getenv func(string) string) model {
	e := endpoint{url: getenv("OPENAI_BASE_URL"), key: getenv("OPENAI_API_KEY"), name: cmp.Or(getenv("OPENAI_MODEL"), "gpt-4.1")}
	if e.url == "" && e.key == "" {
		return nil
	}
	e.url = strings.TrimSuffix(cmp.Or(e.url, "https://api.openai.com/v1"), "/")
	return e
}

// What a reply may cost.
const (
	longestReply = 8 << 20
	longestAsk   = 10 * time.Minute
)

func (e endpoint) next(ctx context.Context, talk []message) (message, error) {
	ctx, cancel := context.WithTimeout(ctx, longestAsk)
	defer cancel()
	body, err := json.Marshal(map[string]any{"model": e.name, "messages": talk, "tools": offered()})
	if err != nil {
		return message{}, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return message{}, err
	}
	q.Header.Set("Content-Type", "application/json")
	if e.key != "" {
		q.Header.Set("Authorization", "Bearer "+e.key)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return message{}, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, longestReply))
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", r.Status, text[:min(len(text), 500)])
	}
	var reply struct{ Choices []struct{ Message message } }
	if err == nil {
		err = json.Unmarshal(text, &reply) // a longer reply is cut, and so is none
	}
	if err == nil && len(reply.Choices) == 0 {
		err = errors.New("it has no choices")
	}
	if err != nil {
		return message{}, fmt.Errorf("the model's reply: %w", err)
	}
	m := reply.Choices[0].Message
	m.Role = "assistant"
	return m, nil
}

// offered are the tools as the endpoint wants them.
func offered() []any {
	var list []any
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		t := tools[name]
		f := map[string]any{"name": name, "description": t.about, "parameters": json.RawMessage(t.parameters)}
		list = append(list, map[string]any{"type": "function", "function": f})
	}
	return list
}
