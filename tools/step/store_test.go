package main

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// bucket is a store that knows these objects and answers 503 so many times before.
func bucket(t *testing.T, p *pod, objects map[string]string, outages int) {
	t.Helper()
	serve(t, p, func(w http.ResponseWriter, r *http.Request) {
		if outages--; outages >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=me/") {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
			return
		}
		if r.URL.Query().Get("list-type") == "" {
			data, ok := objects[r.URL.Path]
			w.Header().Set("Last-Modified", "Fri, 24 May 2013 00:00:00 GMT")
			if !ok {
				w.WriteHeader(http.StatusNotFound)
			}
			fmt.Fprint(w, data)
			return
		}
		// One key a page, as a store with very many would answer.
		var keys []string
		for _, name := range sortedNames(objects) {
			if key, ok := strings.CutPrefix(name, r.URL.Path); ok && strings.HasPrefix(key, r.URL.Query().Get("prefix")) && key > r.URL.Query().Get("continuation-token") {
				keys = append(keys, key)
			}
		}
		fmt.Fprint(w, "<ListBucketResult>")
		if len(keys) > 0 {
			fmt.Fprintf(w, "<Contents><Key>%s</Key></Contents><IsTruncated>%t</IsTruncated><NextContinuationToken>%s</NextContinuationToken>", keys[0], len(keys) > 1, keys[0])
		}
		fmt.Fprint(w, "</ListBucketResult>")
	})
}

// serve has the pod's store answer so.
func serve(t *testing.T, p *pod, answer http.HandlerFunc) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	storePause = time.Millisecond
	p.template.ArchiveLocation.S3.Endpoint = strings.TrimPrefix(server.URL, "http://")
	t.Setenv("TRAINYARD_S3_ACCESS_KEY", "me")
	t.Setenv("TRAINYARD_S3_SECRET_KEY", "secret")
}

func TestCollect(t *testing.T) {
	p := newPod(t, "{}", nil)
	bucket(t, &p, map[string]string{"/runs/v/1/m/data": "one", "/runs/v/1/m/meta.json": "{}", "/runs/v/2/m/data/a b": "two", "/runs/v/10/m/data": "no"}, 3)
	t.Setenv("TRAINYARD_LISTS", `{"models": [["s3://runs/v/1/m"], "[\"s3://runs/v/2/m\"]", "", null], "none": []}`)
	if err := collect(p.place); err != nil {
		t.Fatal(err)
	}
	p.is("one", "kfp/in/models/0/data")
	p.is("two", "kfp/in/models/1/data/a b")
	if !exists(p.kfp("in/none")) || exists(p.kfp("in/models/2")) {
		t.Error("the lists have other lengths")
	}
	t.Setenv("TRAINYARD_LISTS", `{"models": ["s3://runs/v/3/m"]}`)
	fails(t, collect(p.place), codeData, "s3://runs/v/3/m is not there any more")
	t.Setenv("TRAINYARD_LISTS", `{"models": ["s3://other/v/1/m"]}`)
	fails(t, collect(p.place), codeData, "list models", "bucket of this run")
	t.Setenv("TRAINYARD_LISTS", `{"models": ["s3://runs/v/1/m"]}`)
	t.Setenv("TRAINYARD_S3_ACCESS_KEY", "you")
	fails(t, collect(p.place), codeStore, "s3://runs/v/1/m/ can't be read", "AccessDenied")
}

func TestImport(t *testing.T) {
	const step = `{"task": "importer", "outputs": {"artifacts": {"artifact": {"type": "system.Dataset"}}}}`
	p := newPod(t, step, map[string]string{"uri": "s3://datasets/set.csv", "metadata": `{"rows": 2.0}`})
	bucket(t, &p, map[string]string{"/datasets/set.csv": "a,b", "/datasets/tree/x/y": "z"}, 0)
	if err := importArtifact(p.place); err != nil {
		t.Fatal(err)
	}
	p.is("a,b", "kfp/out/artifact/data")
	if m := p.document("kfp/out/artifact/meta.json"); m["uri"] != "s3://datasets/set.csv" || toJSON(m["metadata"]) != `{"rows":2}` {
		t.Error(m)
	}
	first := p.read("kfp/outp/.sha-artifact")
	for uri, words := range map[string]string{"s3://datasets/tree": "", "gs://else/where": "", "s3://datasets/gone": "does not exist", "": "no uri", "s3://": "no bucket"} {
		t.Setenv("TRAINYARD_PARAMS", toJSON(map[string]string{"uri": uri}))
		q := p
		q.root = t.TempDir()
		if err := importArtifact(q.place); words != "" {
			fails(t, err, codeData, words)
		} else if err != nil || q.read("kfp/outp/.sha-artifact") == first || exists(q.kfp("out/artifact/data")) == strings.HasPrefix(uri, "gs") {
			t.Error(uri, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	const said = "<Error><Code>%s</Code><Message>no</Message></Error>"
	for _, c := range []struct {
		status  int
		body    string
		message string
		final   bool
	}{
		{403, fmt.Sprintf(said, "AccessDenied"), "403 Forbidden AccessDenied no", true},
		{404, fmt.Sprintf(said, "NoSuchBucket"), "404 Not Found NoSuchBucket no", false},
		{400, fmt.Sprintf(said, "AuthorizationHeaderMalformed"), "400 Bad Request AuthorizationHeaderMalformed no", true},
		{429, fmt.Sprintf(said, "SlowDown"), "429 Too Many Requests SlowDown no", false},
		{500, fmt.Sprintf(said, "InternalError"), "500 Internal Server Error InternalError no", false},
		{502, "<html>a proxy's page", "502 Bad Gateway", false},
		{503, "", "503 Service Unavailable", false},
	} {
		p := newPod(t, "{}", nil)
		asked := 0
		serve(t, &p, func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		})
		s, err := newStore(p.place)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.client.ListObjectsV2("runs", "", "", "", "", 0)
		err = refusal(err)
		if _, last := err.(final); err == nil || err.Error() != c.message || last != c.final || asked != 1 {
			t.Errorf("%d: final %t, asked %d times: %v", c.status, last, asked, err)
		}
	}
}

// unknownBuckets is a store that says of every bucket, so many times, that there is none, and has one object after that.
func unknownBuckets(t *testing.T, p *pod, times int) *int {
	t.Helper()
	asked := 0
	serve(t, p, func(w http.ResponseWriter, r *http.Request) {
		if asked++; asked <= times {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, "<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message></Error>")
			return
		}
		w.Header().Set("Last-Modified", "Fri, 24 May 2013 00:00:00 GMT")
		if r.URL.Query().Get("list-type") == "" {
			fmt.Fprint(w, "back")
			return
		}
		fmt.Fprint(w, "<ListBucketResult><Contents><Key>v/data</Key></Contents></ListBucketResult>")
	})
	return &asked
}

func TestAStoreThatHasJustStartedIsAskedAgainForItsBuckets(t *testing.T) {
	p := newPod(t, "{}", nil)
	asked := unknownBuckets(t, &p, 3)
	s, err := newStore(p.place)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := s.file("runs", "v/data", p.path("got")); err != nil || !found || p.read("got") != "back" {
		t.Errorf("found %t: %v", found, err)
	}
	*asked = 0
	if keys, err := s.list("runs", "v/"); err != nil || len(keys) != 1 || *asked != 4 {
		t.Errorf("asked %d times: %v, %v", *asked, keys, err)
	}
}

func TestABucketThatStaysUnknownIsNamed(t *testing.T) {
	patience := bucketPatience
	bucketPatience = 50 * time.Millisecond
	t.Cleanup(func() { bucketPatience = patience })
	p := newPod(t, "{}", map[string]string{"uri": "s3://tpyo/set.csv"})
	t.Setenv("TRAINYARD_STEP", `{"task": "importer", "outputs": {"artifacts": {"artifact": {"type": "system.Dataset"}}}}`)
	asked := unknownBuckets(t, &p, 1<<30)
	fails(t, importArtifact(p.place), codeStore, "s3://tpyo/set.csv can't be read: 404 Not Found NoSuchBucket The specified bucket does not exist")
	if *asked < 2 {
		t.Errorf("asked %d times", *asked)
	}
}

func TestNamesThatNoStoreTakesAreNotTriedAgain(t *testing.T) {
	p := newPod(t, "{}", nil)
	s, err := newStore(p.place)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.list("x", "v/")
	fails(t, err, codeStore, "s3://x/v/ can't be read", "shorter than 3")
	_, err = s.file("x", "v", p.path("got"))
	fails(t, err, codeStore, "s3://x/v can't be read", "shorter than 3")
	_, err = s.list("runs", strings.Repeat("k", 1025))
	fails(t, err, codeStore, "longer than 1024")
}

func TestOwnAuthority(t *testing.T) {
	patience := storePatience
	t.Cleanup(func() { storePatience = patience })
	p := newPod(t, "{}", nil)
	server := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that fails below
	p.template.ArchiveLocation.S3.Endpoint = strings.TrimPrefix(server.URL, "https://")
	p.template.ArchiveLocation.S3.Insecure = false
	asks := func() error {
		s, err := newStore(p.place)
		if err == nil {
			_, err = s.file("runs", "key", p.path("got"))
		}
		return err
	}
	storePatience = 0
	fails(t, asks(), codeStore, "certificate signed by unknown authority")
	t.Setenv("TRAINYARD_S3_CA", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	if err := asks(); err != nil {
		t.Error(err)
	}
	t.Setenv("TRAINYARD_S3_CA", "nothing")
	fails(t, asks(), codeUsage, "TRAINYARD_S3_CA holds no certificate")
}
