package analysis

import "strings"

// stemLithuanian strips the inflection off a Lithuanian word: the longest ending
// of the declensions, the adjectives (simple and pronominal) and the commonest
// verb forms that leaves at least three letters with a vowel, then undoes the
// softening that an ending with i causes (medis, medžio; katė, kačių) and the
// i itself (kelias, keliu). It works on folded letters, so that words typed
// without accents get the same stem. Light by intent: derivation (-imas,
// -ininkas) stays.
func stemLithuanian(word string) string {
	w := Fold(word)
	best := 0
	for _, n := range [...]int{7, 6, 5, 4, 3, 2, 1} {
		if len(w)-n >= 3 && lithuanianEndings[w[len(w)-n:]] && strings.ContainsAny(w[:len(w)-n], "aeiouy") {
			best = n
			break
		}
	}
	soft := best > 0 && w[len(w)-best] == 'i'
	w = w[:len(w)-best]
	if !soft || len(w) < 3 {
		return w
	}
	switch {
	case strings.HasSuffix(w, "dz"):
		return w[:len(w)-2] + "d"
	case strings.HasSuffix(w, "c"):
		return w[:len(w)-1] + "t"
	}
	return w
}

// lithuanianEndings are inflectional endings with their accents folded.
var lithuanianEndings = wordSet(
	// nouns, first to fifth declension, singular and plural
	"as ias is ys o io ui iui a ia u iu e ie yje uje iuje ai iai u iu ams iams us ius ais iais uose iuose",
	"os ios ai iai oje ioje omis iomis oms ioms ose iose",
	"i es ei eje emis ems ese ies iai imi yje ys ims imis yse",
	"us aus ui umi uje au umis ums un iaus iumi iau",
	"uo ens eni enyje enys enu enims enimis enyse ers eri eria erys eru erims erimis",
	// adjectives and participles, simple, comparative and pronominal
	"am iam ame iame ieji ieje aisiais iaisiais uosius iuosius uju iuju ojo iojo asis ysis oji ioji aja iaja ajam iajam ajame iajame uoju iuoju osios iosios ajai iajai ojoje iojoje osiomis iosiomis osioms iosioms osiose iosiose iesiems uosiuose",
	"esnis esne esnio esnes esni esniu esniai esniam esniame iausias iausia iausio iausiu iausiai",
	"iems emis",
	// verbs: present, past, future, infinitive, reflexive
	"ti tis tas ta to tu tai tos tam tame tose tuose tiems tais tomis toms",
	"ame iame ate iate ome iome ote iote eme ete iau iai ejo ejau davo davau davome davote siu si s sime site damas dama dami damos antis anti anciu ancio ant iant us usi usio",
)

func wordSet(lists ...string) map[string]bool {
	out := map[string]bool{}
	for _, l := range lists {
		for _, w := range strings.Fields(l) {
			out[w] = true
		}
	}
	return out
}
