package indextest

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"

	"github.com/freshet/freshet/index"
)

// Variant returns page i of any number of pages. The first are the real ones.
// The others have the text of a real one in pieces of 12 words, in another order,
// and half of its rare words are other words, so that the dictionary grows with the
// pages as it does in the web.
func (p *Pages) Variant(i int) index.Document {
	d := p.Documents[i%len(p.Documents)]
	round := i / len(p.Documents)
	if round == 0 {
		return d
	}
	r := rand.New(rand.NewPCG(11, uint64(i)))
	d.ID = fmt.Sprintf("%s?variant=%d", d.ID, round)
	d.Same = fmt.Sprint("variant ", i)
	words := strings.Fields(d.Body)
	for j, w := range words {
		if n := p.words[strings.ToLower(w)]; n > 0 && n <= 5 && maphash.String(variantSeed, w)&1 == 0 {
			words[j] = fmt.Sprintf("%s%c%c", w, 'a'+round%26, 'a'+round/26%26)
		}
	}
	const piece = 12
	var b strings.Builder
	for _, k := range r.Perm((len(words) + piece - 1) / piece) {
		b.WriteString(strings.Join(words[k*piece:min(len(words), k*piece+piece)], " "))
		b.WriteByte(' ')
	}
	d.Body = b.String()
	return d
}

var variantSeed = maphash.MakeSeed()
