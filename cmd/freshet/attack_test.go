package main

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"testing"

	"github.com/freshet/freshet/lab/attack"
)

// The robot withstands the hostile web three times in a row with one data
// directory: what the first crawl stored does not stop the next.
func TestAttack(t *testing.T) {
	t.Parallel()
	self := binary(t)
	cmd := exec.Command(self, "--json", "lab", "attack", "--runs", "3", "--max-memory", "6000", "--", self, "--quiet", "--data", t.TempDir(), "crawl", "--allow-private", "{seeds}")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var card attack.Card
	if jsonErr := json.Unmarshal(out, &card); jsonErr != nil {
		t.Fatalf("lab attack: %v, %v\n%s", err, jsonErr, stderr.Bytes())
	}
	for _, v := range card.Attacks {
		if !v.Withstood {
			t.Errorf("%s (%s): %s", v.Name, v.What, v.Why)
		}
	}
	if card.ProcessBad != "" || err != nil {
		t.Errorf("the robot's process: %s; lab attack: %v, want exit status 0\n%s", card.ProcessBad, err, stderr.Bytes())
	}
}
