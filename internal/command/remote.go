package command

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/freshet/freshet/app"
)

// Remote is how a command reaches a running serve.
type Remote struct {
	Address string `help:"Address of the console (default: of the serve on this data directory)." placeholder:"HOST:PORT"`
	Token   string `help:"Bearer token of an operator (default: the token of the owner of the data directory)." env:"FRESHET_TOKEN"`
}

// endpoint is where a running serve is reached, and with which token.
type endpoint struct {
	url    string
	token  string
	client *http.Client
}

// resolveEndpoint returns the given address, or the address of the serve on the data
// directory, with the token that its owner can read.
func (r *Remote) resolveEndpoint(g *Globals) (*endpoint, error) {
	if r.Address != "" {
		address := r.Address
		if !strings.Contains(address, "://") {
			address = "http://" + address
		}
		return &endpoint{strings.TrimSuffix(address, "/"), r.Token, http.DefaultClient}, nil
	}
	dir, err := g.DataDir()
	if err != nil {
		return nil, err
	}
	address, err := app.Address(dir)
	if err != nil {
		return nil, err
	}
	token := r.Token
	if token == "" {
		if token, err = app.OwnerToken(dir); err != nil {
			return nil, err
		}
	}
	return &endpoint{address, token, localClient(address)}, nil
}

// localClient returns a client for the serve of a data directory on this machine.
// Its certificate is made out for other names than its address, and a connection
// to loopback goes past nobody.
func localClient(address string) *http.Client {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" {
		return http.DefaultClient
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil || (!ip.IsLoopback() && !ip.IsUnspecified()) {
		return http.DefaultClient
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}

// LoginLink returns an address that logs one browser in to a running serve.
func (r *Remote) LoginLink(ctx context.Context, g *Globals) (string, error) {
	at, err := r.resolveEndpoint(g)
	if err != nil {
		return "", err
	}
	var a struct{ Path string }
	if err := r.Call(ctx, g, http.MethodPost, "/api/login-link", nil, &a); err != nil {
		return "", err
	}
	return at.url + a.Path, nil
}

// Call sends a request and decodes the JSON answer into out.
func (r *Remote) Call(ctx context.Context, g *Globals, method, path string, in, out any) error {
	at, err := r.resolveEndpoint(g)
	if err != nil {
		return err
	}
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, at.url+path, body)
	if err != nil {
		return Usagef("--address: %w", err)
	}
	if at.token != "" {
		req.Header.Set("Authorization", "Bearer "+at.token)
	}
	res, err := at.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask the running freshet: %w", err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return fmt.Errorf("ask the running freshet: %w", err)
	}
	if res.StatusCode >= 300 {
		var e struct{ Error string }
		if json.Unmarshal(b, &e) == nil && e.Error != "" {
			return errors.New(e.Error)
		}
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, strings.TrimSpace(string(b)))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}
