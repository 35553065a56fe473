package content

import "bytes"

// writeToSize writes a page of exactly p.Size bytes. The text is repeated or cut, and
// what is left of a word is made up by spaces. A page that is too small for a
// frame has none: its note and links, then text. Only where links and note
// alone are longer than the size is the page, too.
func (w *Words) writeToSize(h *writer, p *Page) {
	start := len(h.b)
	w.writePageTop(h, p)
	top := len(h.b)
	h.writeEndTag("p", true)
	w.writePageFoot(h, p, p.Links)
	foot := bytes.Clone(h.b[top:])
	if len(h.b)-start <= p.Size {
		h.b = h.b[:top]
		w.fillText(h, p, start+p.Size-len(foot))
		h.b = append(h.b, foot...)
		return
	}
	h.b = append(append(h.b[:start], p.Note...), ' ')
	for i := range p.Links {
		w.writeAnchor(h, &p.Links[i])
	}
	w.fillText(h, p, start+p.Size)
}

// fillText writes text until so many bytes are written in all.
func (w *Words) fillText(h *writer, p *Page, to int) {
	from := len(h.b)
	if from >= to {
		return
	}
	w.writeSentences(h, p, nil)
	for once := len(h.b) - from; len(h.b) < to; {
		h.b = append(h.b, h.b[from:from+min(once, to+1-len(h.b))]...)
	}
	if len(h.b) > to {
		// A space within the text ends a word: neither a tag nor a letter is cut.
		cut := from + bytes.LastIndexByte(h.b[from:to+1], ' ')
		h.b = h.b[:max(from, cut)]
	}
	for len(h.b) < to {
		h.b = append(h.b, ' ')
	}
}
