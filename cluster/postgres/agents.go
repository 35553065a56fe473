package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/freshet/freshet/cluster"
)

// fairShare is a node's part of the limit: what nodes leave that want fewer is shared
// by the others, the remainder goes to the first by name.
func fairShare(limit int, nodes []cluster.Node, name string) int {
	unmet := make(map[string]int, len(nodes)) // agents wanted and not given
	for _, o := range nodes {
		unmet[o.Name] = o.WantedAgents
	}
	share := 0
	for limit > 0 && len(unmet) > 0 {
		each := max(1, limit/len(unmet))
		for _, o := range nodes {
			want, ok := unmet[o.Name]
			if !ok || limit == 0 {
				continue
			}
			given := min(each, want, limit)
			limit -= given
			if o.Name == name {
				share += given
			}
			if unmet[o.Name] -= given; unmet[o.Name] == 0 {
				delete(unmet, o.Name)
			}
		}
	}
	return share
}

const (
	makeSlots  = "insert into slots (n) select n from generate_series(1, $1::integer) as t (n) on conflict (n) do nothing"
	dropSlots  = "delete from slots where n > $1 and (node = '' or until < $2)"
	ownSlots   = "select n from slots where node = $1 and until >= $2 order by n for update"
	renewSlots = "update slots set until = $3 where node = $1 and n = any($2)"
	freeSlots  = "update slots set node = '', until = 0 where node = $1 and not (n = any($2))"
	claimSlots = `
with free as (select n from slots where n <= $2 and (node = '' or until < $3) order by n limit $4 for update skip locked)
update slots set node = $1, until = $5 from free where slots.n = free.n`
)

// agentShare is the part of the limit that a node shall hold.
type agentShare struct {
	node       string
	limit      int   // of all nodes
	want       int   // slots that the node shall hold
	working    int   // agents at work
	now, until int64 // milliseconds
}

// claim claims or gives back slots and returns how many agents may work. A slot is given
// back only when fewer agents work than slots are held.
func (s *agentShare) claim(ctx context.Context, tx pgx.Tx) (allowed int, err error) {
	rows, err := tx.Query(ctx, ownSlots, s.node, s.now)
	if err != nil {
		return 0, err
	}
	own, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		return 0, err
	}
	valid, _ := slices.BinarySearch(own, s.limit+1) // slots beyond a lowered limit last as long as their agents
	beyond := own[valid:]
	valid = min(valid, max(s.want, s.working))
	own = append(own[:valid:valid], beyond[:min(len(beyond), max(0, s.working-valid))]...)
	var q pgx.Batch
	q.Queue(freeSlots, s.node, own)
	q.Queue(renewSlots, s.node, own, s.until)
	q.Queue(dropSlots, s.limit, s.now)
	q.Queue(makeSlots, s.limit)
	claimed := 0
	if missing := s.want - valid; missing > 0 {
		q.Queue(claimSlots, s.node, s.limit, s.now, missing, s.until).Exec(func(tag pgconn.CommandTag) error {
			claimed = int(tag.RowsAffected())
			return nil
		})
	}
	if err := tx.SendBatch(ctx, &q).Close(); err != nil {
		return 0, err
	}
	return min(valid+claimed, s.want), nil
}
