package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/freshet/freshet/internal/command"
)

// Programs of others read these fields: none is renamed or left out. A dot goes
// into an object, [] into the first element of a list.
func TestFormats(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := map[string]string{
		"items.csv":  "id,importance,change_rate,host,host_cap,signals\na,1,0.5,h,1,false\nb,2,3,h,1,false\nc,1,10,g,,true\n",
		"visits.csv": "id,time,changed,last_modified\na,0,0,\na,1,1,0.5\na,2,0,0.5\n",
		"robots.txt": "User-agent: *\nDisallow: /private\n",
		"model.json": `{"capacity":5,"modes":[{"d":[[[-1]],[[1]]]},{"d":[[[-3]],[[3]]]}],"service":{"beta":[1],"s":[[-2]]},"obsolescence":{"gamma":[1],"g":[[-0.1]]},"thresholds":[2],"cost":{"loss":1,"obsolete":1,"response":0.1,"starvation":1,"robot":0.1}}`,
		"idle.json":  `{"capacity":5,"robots":[{"d":[[[-1]],[[1]]]},{"d":[[[-1]],[[1]]]}],"idle":"freeze","service":{"beta":[1],"s":[[-2]]},"obsolescence":null,"policy":[2,2,1,1,1,1],"cost":{"loss":1,"obsolete":1,"response":0.1,"starvation":1,"robot":0.1}}`,
		"thin.json":  `{"capacity":3,"common":{"d":[[[-2]],[[2]]]},"thinning":[0.5,1],"service":{"beta":[1],"s":[[-2]]},"obsolescence":null,"thresholds":[1],"cost":{"loss":1,"obsolete":1,"response":0.1,"starvation":1,"robot":0.1}}`,
		"mark.json":  `{"capacity":3,"marked":{"d0":[[-2]],"robots":[[[[1]]],[[[1]]]]},"service":{"beta":[1],"s":[[-2]]},"obsolescence":null,"thresholds":[1],"cost":{"loss":1,"obsolete":1,"response":0.1,"starvation":1,"robot":0.1}}`,
		"links.tsv":  "0\t1\n1\t2\n2\t0\n",
		"tree/a.txt": "a word",
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const (
		found    = "total took_ms results[].title results[].url results[].kind results[].snippet results[].score results[].host results[].online results[].copies"
		solved   = "queue_length arrival_rate p_loss p_obsolete p_success p_starvation mean_sojourn mean_sojourn_served mean_sojourn_obsolete mean_robots cost method states"
		watching = "freshness_end freshness_mean stale_end bytes cycles delay.min delay.mean delay.max max_in_progress events seconds"
		monitor  = "lab monitor run --pages 100 --time 10000 --changes 5 --requests 5 --seed 3 --variant "
		planned  = "items[].id items[].rate items[].signal_probability freshness age budget_used"
	)
	for _, tt := range []struct{ args, want string }{
		{"crawl --data $D/d http://127.0.0.1:1/ --allow-private --out $D/p.jsonl", "pages urls_seen hosts errors bytes seconds pages_per_second unchanged rendered urls_only_by_rendering skipped"},
		{"robots --agent x $D/robots.txt https://h/a https://h/private", "results[].url results[].allowed results[].line results[].rule crawl_delay sitemaps"},
		{"scan --data $D/d file://$D/tree", "hosts files folders media parts parts_changed listings tag_reads store_reads store_writes added changed removed errors seconds"},
		{"search --data $D/d --kind file --limit 3 --offset 0 a", found},
		{"lab revisit plan --policy uniform --budget 2 $D/items.csv", planned},
		{"lab revisit plan --policy proportional --budget 2 $D/items.csv", planned},
		{"lab revisit plan --policy fixed-optimal --budget 2 $D/items.csv", planned},
		{"lab revisit plan --policy age-optimal --budget 2 $D/items.csv", planned},
		{"lab revisit plan --policy random-optimal --budget 2 $D/items.csv", planned},
		{"lab revisit plan --policy no-starvation --budget 2 $D/items.csv", planned},
		{"lab revisit estimate $D/visits.csv", "items[].id items[].visits items[].changes items[].naive items[].regular items[].mle items[].low items[].high"},
		{monitor + "plain:2", watching},
		{monitor + "conditional:2", watching},
		{monitor + "sensor", watching},
		{"lab control solve $D/model.json", solved},
		{"lab control solve $D/idle.json", solved},
		{"lab control solve $D/thin.json", solved},
		{"lab control solve $D/mark.json", solved},
		{"lab control optimize $D/model.json", "best.policy best.thresholds best.modes best.cost fixed[].mode fixed[].cost by_modes[].modes by_modes[].thresholds by_modes[].cost unrestricted.policy unrestricted.cost"},
		{"lab control fit --moments 1,2.5,10", "beta s goodness"},
		{"lab web gen --model er --nodes 300 --links 5 --seed 2 -o $D/er", "nodes links"},
		{"lab web gen --model host-local --nodes 3000 --in-exponent 2.1 --out-exponent 2.7 --intra-host 0.8 --seed 1 -o $D/hl", "nodes links"},
		{"lab web import $D/links.tsv -o $D/imported", "nodes links"},
		{"lab web stats $D/hl", "nodes links mean_out_degree in_exponent out_exponent in_xmin out_xmin clustering largest_scc bow_tie.scc bow_tie.in bow_tie.out bow_tie.other reciprocity intra_host"},
	} {
		var out, errs bytes.Buffer
		args := append([]string{"--quiet", "--json"}, strings.Fields(strings.ReplaceAll(tt.args, "$D", dir))...)
		if code := runArguments(context.Background(), args, strings.NewReader(""), &out, &errs); code != command.ExitOK {
			t.Errorf("%s: exit %d: %s", tt.args, code, errs.String())
			continue
		}
		var object any
		if err := json.Unmarshal(out.Bytes(), &object); err != nil {
			t.Errorf("%s: %v: %s", tt.args, err, out.String())
			continue
		}
		for _, field := range strings.Fields(tt.want) {
			if !has(object, field) {
				t.Errorf("%s: no %s in %s", tt.args, field, out.String())
			}
		}
	}
}

// has tells whether a field is there, by its path.
func has(v any, path string) bool {
	name, rest, deeper := strings.Cut(path, ".")
	name, list := strings.CutSuffix(name, "[]")
	o, ok := v.(map[string]any)
	if !ok {
		return false
	}
	in, ok := o[name]
	if !ok || (!deeper && !list) {
		return ok
	}
	if list {
		all, ok := in.([]any)
		if !ok || len(all) == 0 {
			return false
		}
		in = all[0]
	}
	return !deeper || has(in, rest)
}
