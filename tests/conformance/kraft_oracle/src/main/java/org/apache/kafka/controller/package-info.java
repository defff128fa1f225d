/**
 * Kafka's own quorum controller as judge, one case per line of JSON.
 *
 * <p>The managers that decide everything are visible to their own package only, so this program
 * lives in it. No class of Kafka is replaced: what is here has names of its own.
 */
package org.apache.kafka.controller;
