package mlflow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// client's errors have only the host and the API's name: addresses and headers may have secrets.
type client struct {
	transport http.RoundTripper
	base      *url.URL
	host      string
	header    http.Header
	timeout   time.Duration
}

func newClient(to Run, u *url.URL) *client {
	c := &client{transport: cmp.Or(to.Transport, http.DefaultTransport), base: u, host: u.Host, header: http.Header{}, timeout: to.Timeout}
	of := &http.Request{Header: c.header}
	switch user, password := to.User, to.Password; {
	case to.Token != "":
		c.header.Set("Authorization", "Bearer "+to.Token)
	case user != "" || password != "":
		of.SetBasicAuth(user, password)
	case u.User != nil:
		password, _ := u.User.Password()
		of.SetBasicAuth(u.User.Username(), password)
	}
	return c
}

// refusedError is an answer that another request would get too.
type refusedError struct {
	status        int
	Code, Message string
}

func (e *refusedError) Error() string {
	return strings.TrimRight(fmt.Sprintf("the status is %d: %s: %s", e.status, e.Code, cut(e.Message, 300)), ": ")
}

// answerLimit limits an answer: those of runs/search have a run's parameters.
const answerLimit = 16 << 20

// do does not follow redirects.
func (c *client) do(ctx context.Context, method, name string, query url.Values, header http.Header, body io.Reader, size int64) ([]byte, error) {
	u := *c.base
	u.User, u.RawQuery, u.Fragment = nil, query.Encode(), ""
	u = *u.JoinPath(strings.Split(name, "/")...)
	request, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: the request cannot be made", c.host, name)
	}
	request.ContentLength = size
	for _, all := range []http.Header{c.header, header} {
		for key, values := range all {
			request.Header[key] = values
		}
	}
	response, err := c.transport.RoundTrip(request)
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("no answer in time")
		}
		return nil, fmt.Errorf("%s: %s: %w", c.host, name, err)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	_ = response.Body.Close()
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %s: no whole answer in time", c.host, name)
	case err != nil:
		return nil, fmt.Errorf("%s: %s: %w", c.host, name, err)
	case response.StatusCode/100 == 2:
		return text, nil
	}
	refused := &refusedError{status: response.StatusCode}
	var said struct {
		Code    string `json:"error_code"`
		Message string `json:"message"`
	}
	if json.Unmarshal(text, &said) == nil {
		refused.Code, refused.Message = said.Code, said.Message
	}
	if response.StatusCode/100 == 4 && refused.Code != "" && response.StatusCode != http.StatusTooManyRequests {
		return nil, fmt.Errorf("%s: %s: %w", c.host, name, refused)
	}
	return nil, fmt.Errorf("%s: %s: %s", c.host, name, refused) // a proxy's, or one of a server that starts
}

const api = "api/2.0/mlflow/"

func (c *client) call(ctx context.Context, method, name string, query url.Values, question, answer any) error {
	ctx, done := context.WithTimeout(ctx, c.timeout)
	defer done()
	var body io.Reader
	var size int64
	header := http.Header{}
	if question != nil {
		text, err := json.Marshal(question)
		if err != nil {
			return err
		}
		body, size = bytes.NewReader(text), int64(len(text))
		header.Set("Content-Type", "application/json")
	}
	text, err := c.do(ctx, method, api+name, query, header, body, size)
	if err != nil {
		return err
	}
	if answer == nil {
		answer = &struct{}{}
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("%s: %s: the answer is not MLflow's: %w", c.host, api+name, err)
	}
	return nil
}

func (c *client) post(ctx context.Context, name string, question, answer any) error {
	return c.call(ctx, http.MethodPost, name, nil, question, answer)
}

type run struct {
	id, artifacts string
	parameters    map[string]string
}

type runAnswer struct {
	Info struct {
		ID        string `json:"run_id"`
		Artifacts string `json:"artifact_uri"`
	} `json:"info"`
	Data struct {
		Params []text `json:"params"`
	} `json:"data"`
}

// idTag finds a run, also if the answer to its creation was lost.
const idTag = "lazo.run"

func (c *client) open(ctx context.Context, to Run, id string) (*run, error) {
	experiment, err := c.experiment(ctx, to.Experiment)
	if err != nil {
		return nil, err
	}
	var found struct {
		Runs []runAnswer `json:"runs"`
	}
	err = c.post(ctx, "runs/search", map[string]any{"experiment_ids": []string{experiment}, "max_results": 1,
		"filter": fmt.Sprintf("tags.`%s` = '%s'", idTag, strings.NewReplacer("'", "", "\\", "").Replace(id))}, &found)
	if err != nil {
		return nil, err
	}
	var made struct {
		Run runAnswer `json:"run"`
	}
	if len(found.Runs) > 0 {
		made.Run = found.Runs[0]
		err = c.status(ctx, &run{id: made.Run.Info.ID}, "RUNNING")
	} else {
		question := map[string]any{"experiment_id": experiment, "start_time": time.Now().UnixMilli(), "tags": []text{{idTag, id}}}
		if to.Name != "" {
			question["run_name"] = to.Name
		}
		err = c.post(ctx, "runs/create", question, &made)
	}
	if err == nil && made.Run.Info.ID == "" {
		err = fmt.Errorf("%s: the answer to a search or creation of a run has no run_id", c.host)
	}
	if err != nil {
		return nil, err
	}
	r := &run{made.Run.Info.ID, made.Run.Info.Artifacts, map[string]string{}}
	for _, p := range made.Run.Data.Params {
		r.parameters[p.Key] = p.Value
	}
	return r, nil
}

func (c *client) experiment(ctx context.Context, name string) (string, error) {
	var found struct {
		Experiment struct {
			ID    string `json:"experiment_id"`
			Stage string `json:"lifecycle_stage"`
		} `json:"experiment"`
	}
	get := func() error {
		return c.call(ctx, http.MethodGet, "experiments/get-by-name", url.Values{"experiment_name": {name}}, nil, &found)
	}
	err := get()
	refused := (*refusedError)(nil)
	if errors.As(err, &refused) && refused.Code == "RESOURCE_DOES_NOT_EXIST" {
		err = c.post(ctx, "experiments/create", map[string]string{"name": name}, nil)
		if errors.As(err, &refused) && refused.Code == "RESOURCE_ALREADY_EXISTS" { // made meanwhile
			err = nil
		}
		if err == nil {
			err = get()
		}
	}
	switch {
	case err != nil:
		return "", err
	case found.Experiment.Stage == "deleted":
		return "", fmt.Errorf("%s: the experiment %q is deleted: restore it, or use another", c.host, name)
	case found.Experiment.ID == "":
		return "", fmt.Errorf("%s: the answer about the experiment %q has no experiment_id", c.host, name)
	}
	return found.Experiment.ID, nil
}

// status also sets the time of the end, unless the run is RUNNING.
func (c *client) status(ctx context.Context, of *run, status string) error {
	question := map[string]any{"run_id": of.id, "status": status}
	if status != "RUNNING" {
		question["end_time"] = time.Now().UnixMilli()
	}
	return c.post(ctx, "runs/update", question, nil)
}
