"""Crawls the closed site of freshet lab bench crawl with Scrapy: site.py N URL..."""

import sys

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor


class Site(scrapy.Spider):
    name = "site"
    links = LinkExtractor()

    def parse(self, response):
        for link in self.links.extract_links(response):
            yield response.follow(link, self.parse)


n, *urls = sys.argv[1:]
process = CrawlerProcess(
    {"CONCURRENT_REQUESTS": int(n), "CONCURRENT_REQUESTS_PER_DOMAIN": int(n), "DOWNLOAD_DELAY": 0, "ROBOTSTXT_OBEY": False,
     "LOG_LEVEL": "ERROR", "TELNETCONSOLE_ENABLED": False, "REQUEST_FINGERPRINTER_IMPLEMENTATION": "2.7"}
)
process.crawl(Site, start_urls=urls)
process.start()
