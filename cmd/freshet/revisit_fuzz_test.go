package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/freshet/freshet/internal/command"
)

// Whatever stands in the tables, the commands print a plan or an estimate of
// finite numbers, or say what is wrong with exit code 2.
func FuzzRevisit(f *testing.F) {
	f.Add("id,importance,change_rate\na,1,1\nb,2,.5\n", true)
	f.Add("id,importance,change_rate,host,host_cap,signals,cost\na,1,1,h,2,true,3\n", true)
	f.Add("id,time,changed,last_modified\na,1,0,\na,2,1,1.5\n", false)
	f.Add("id,time,changed\na,2,0\na,1,1\n", false)
	f.Add("id,\"", true)
	f.Fuzz(func(t *testing.T, table string, plan bool) {
		if len(table) > 2000 {
			return
		}
		args := []string{"--json", "lab", "revisit", "estimate", "-"}
		if plan {
			args = []string{"--json", "lab", "revisit", "plan", "--budget", "3", "-"}
		}
		var out, errs bytes.Buffer
		switch code := runArguments(context.Background(), args, strings.NewReader(table), &out, &errs); code {
		case command.ExitOK:
			if !json.Valid(out.Bytes()) {
				t.Errorf("%q: %s", table, out.String())
			}
		case command.ExitUsage:
			if errs.Len() == 0 {
				t.Errorf("%q: refused without a word", table)
			}
		default:
			t.Errorf("%q: exit %d: %s", table, code, errs.String())
		}
	})
}
